"""What is not kept of a provider's objects: people and cards, which no match needs.

The one list. A field that is on it is stored as dots where it said something, so that it can be
seen that it was there; docs/privacy.md shows the list to people.
"""

import re
from collections.abc import Mapping
from typing import Any

from operations.domain.masking import MASK, SECRET_NAMES, is_secret_name, without_keys

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
#: Quick to look for in the bytes of an event: hardly any event about a refund has one of these.
_PERHAPS = re.compile(
    rb'(?i)"(?:%s)"\s*:|(?:%s)"\s*:|(?:%s)[^":]*"\s*:'
    rb"|(?:sk|rk)_(?:live|test)_|whsec_|rck_|_secret_|bearer\s"
    % tuple("|".join(sorted(names)).encode() for names in (PRIVATE_FIELDS, _ENDINGS, SECRET_NAMES))
)


def is_private(name: str) -> bool:
    """Whether what a field of this name says is about a person or a card, or opens something."""
    lower = name.lower()
    return lower in PRIVATE_FIELDS or lower.endswith(_ENDINGS) or is_secret_name(lower)


def kept(value: Any) -> Any:
    """The same JSON with what is private as dots. Empty fields stay as they are."""
    if isinstance(value, Mapping):
        return {
            name: MASK if inner and is_private(str(name)) else kept(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [kept(inner) for inner in value]
    return without_keys(value) if isinstance(value, str) else value


def may_be_private(raw: bytes) -> bool:
    """Whether JSON text may hold something private; when not, `kept` would change nothing."""
    return _PERHAPS.search(raw) is not None
