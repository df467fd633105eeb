"""What must not be shown of recorded JSON: secrets and card numbers."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

MASK = "••••"
#: Names whose values are secret, as parts of a name in lower case.
SECRET_NAMES = (
    *("secret", "password", "authorization", "api_key", "apikey", "access_token"),
    *("cvc", "cvv", "cookie", "private_key"),
)
#: Values that are secret whatever they are called: keys of providers and of ours, bearer tokens.
_SECRET_VALUES = re.compile(
    r"\b(?:sk|rk)_(?:live|test)_\w+|\bwhsec_[\w+/=]+|\brck_[\w-]{8,}"
    r"|\b\w+_secret_\w+|(?i:\bbearer\s+[\w.~+/=-]{8,})"
)
#: One of these is in each of them, in lower case.
_SIGNS = ("sk_", "rk_", "whsec_", "rck_", "_secret_", "bearer")
#: A card number, or an id of ours, whose end may look like one and is none.
_CARD = re.compile(
    r"(?P<id>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)|\b(?:[0-9][ -]?){12,18}[0-9]\b"
)


def masked(value: Any) -> Any:
    """The same JSON with what is secret replaced by dots."""
    if isinstance(value, str):
        return masked_text(value)
    if isinstance(value, Mapping):
        return {
            name: MASK if is_secret_name(str(name)) and inner else masked(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [masked(inner) for inner in value]
    return value


def masked_text(text: str) -> str:
    """A text without keys, tokens and card numbers."""
    if len(text) > _SHORT:
        return _masked_text(text)
    return text if len(text) < _SHORTEST_SECRET else _masked_short(text)


#: What is this short is mostly a word of ours that comes again and again.
_SHORT = 200
#: In characters: a webhook secret's mark with one more. Nothing shorter is masked.
_SHORTEST_SECRET = 7


@lru_cache(maxsize=1024)
def _masked_short(text: str) -> str:
    return _masked_text(text)


def _masked_text(text: str) -> str:
    text = without_keys(text)
    return _CARD.sub(lambda found: found["id"] or _masked_card(found[0]), text)


def without_keys(text: str) -> str:
    """A text without keys and tokens. Long numbers stay: an id of an order may look like a card."""
    lower = text.lower()
    # The pattern is slow, and hardly any text has one of these.
    if any(sign in lower for sign in _SIGNS):
        return _SECRET_VALUES.sub(MASK, text)
    return text


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether what stands under this name opens something."""
    lower = name.lower()
    return any(part in lower for part in SECRET_NAMES)


def _masked_card(text: str) -> str:
    """A card number keeps its last four digits; other long numbers stay."""
    digits = [int(digit) for digit in text if digit.isdigit()]
    return f"{MASK}{''.join(map(str, digits[-4:]))}" if _has_check_digit(digits) else text


def _has_check_digit(digits: list[int]) -> bool:
    """Whether the digits end as card numbers do (Luhn)."""
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
