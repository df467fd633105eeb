"""What is not kept of a provider's objects: people and cards, which no match needs.

The one list. A field that is on it is stored as dots where it said something, so that it can be
seen that it was there; docs/privacy.md shows the list to people.
"""

from functools import lru_cache
from operator import is_
from typing import Any

from operations.domain.masking import MASK, is_secret_name, without_keys

#: Fields of the provider's objects whose whole content is dropped, by name.
PRIVATE_FIELDS = frozenset(
    [
        *("billing_details", "shipping", "shipping_details", "customer_details", "owner"),
        *("payment_method_details", "payment_method_data", "bank_account"),
        *("card_number", "fingerprint", "iin", "exp_month", "exp_year", "last4"),
        *("address", "customer_address", "customer_name", "cardholder_name", "phone", "email"),
        *("receipt_url", "receipt_number", "ip_address", "ip", "evidence", "tax_ids"),
        *("date_of_birth", "dob", "first_name", "last_name", "full_name", "iban"),
    ]
)
_ENDINGS = ("email", "phone", "phone_number", "_address")


@lru_cache(maxsize=4_096)
def is_private(name: str) -> bool:
    """Whether what a field of this name says is about a person or a card, or opens something."""
    lower = name.lower()
    return lower in PRIVATE_FIELDS or lower.endswith(_ENDINGS) or is_secret_name(lower)


def kept(value: Any) -> Any:
    """The same JSON with what is private as dots. Empty fields stay as they are.

    The very same object where there is nothing private: most of what a provider says is kept as it
    came, and every event passes here.
    """
    if isinstance(value, dict):
        return _kept_object(value)
    if isinstance(value, list | tuple):
        items = [kept(inner) for inner in value]
        return value if all(map(is_, items, value)) else items
    return without_keys(value) if isinstance(value, str) else value


def _kept_object(fields: dict[Any, Any]) -> dict[Any, Any]:
    changed = {}
    for name, inner in fields.items():
        if not inner:
            continue
        shown = MASK if is_private(str(name)) else kept(inner)
        if shown is not inner:
            changed[name] = shown
    return fields | changed if changed else fields
