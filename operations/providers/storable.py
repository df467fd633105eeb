"""Making what came from outside fit for PostgreSQL, which holds less than JSON can say."""

import math
from typing import Any

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(value: Any) -> Any:
    """The same JSON value, with what jsonb refuses replaced.

    NUL and half surrogate pairs become the replacement character, in names too; numbers that are
    not finite (Python reads them, JSON has none) become null. Raises RecursionError for a value
    that is nested too deep.
    """
    match value:
        case str():
            return storable_text(value)
        case float() if not math.isfinite(value):
            return None
        case list():
            return [storable(item) for item in value]
        case dict():
            return {storable_text(str(name)): storable(item) for name, item in value.items()}
        case _:
            return value


def storable_text(text: str) -> str:
    """The text without NUL and half surrogate pairs."""
    if text.isascii() and "\x00" not in text:
        return text
    # Two halves that stand side by side are one character; a half alone is none.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\x00", _REPLACEMENT)
