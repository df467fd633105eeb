"""Environment variables, read with a type and limits.

Every reader answers a wrong value with one sentence that names the variable. A variable that is
set to the empty string counts as unset, as Compose files and CI systems often do that.
"""

import re
from collections.abc import Mapping

from django.core.exceptions import ImproperlyConfigured


class Environment:
    """What the process was given."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str, default: str = "") -> str:
        return self._values.get(name, "").strip() or default

    def switch(self, name: str) -> bool:
        """Read a yes or no; unset is no."""
        match self.text(name, "0").lower():
            case "1" | "true" | "yes" | "on":
                return True
            case "0" | "false" | "no" | "off":
                return False
            case wrong:
                raise ImproperlyConfigured(f'{name} must be 1 or 0, not "{wrong}".')

    def listed(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Read a comma-separated list, without its empty parts."""
        parts = tuple(part.strip() for part in self.text(name).split(",") if part.strip())
        return parts or default

    def whole(self, name: str, default: int, *, least: int, most: int) -> int:
        text = self.text(name)
        return whole_number(name, text, least=least, most=most) if text else default

    def seconds(self, name: str, default: float, *, least: float, most: float) -> float:
        text = self.text(name)
        return number_of_seconds(name, text, least=least, most=most) if text else default


def whole_number(name: str, text: str, *, least: int, most: int) -> int:
    """A whole number in digits, or one sentence on what is wrong."""
    # int() alone would also take "1_000", " 7" and digits of other scripts.
    if not re.fullmatch(r"-?[0-9]{1,18}", text) or not least <= int(text) <= most:
        raise ImproperlyConfigured(
            f'{name} must be a whole number from {least} to {most}, not "{text}".'
        )
    return int(text)


def number_of_seconds(name: str, text: str, *, least: float, most: float) -> float:
    """Seconds in digits, with up to six after the point."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text) or not least <= float(text) <= most:
        raise ImproperlyConfigured(
            f'{name} must be a number of seconds from {least:g} to {most:g}, not "{text}".'
        )
    return float(text)
