"""Reads Stripe's form encoding (`metadata[order]=7`, `expand[]=charge`) and checks parameters.

Everything raised here is a validation failure: it is found before an endpoint begins, so nothing
is saved for the idempotency key (Stripe, "Idempotent requests").
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from .answers import StripeError

PART = re.compile(r"\[([^\[\]]*)\]")
INTEGER = re.compile(r"[+-]?\d+")
REASONS = ("duplicate", "fraudulent", "requested_by_customer")
METADATA_KEYS, METADATA_KEY_LENGTH, METADATA_VALUE_LENGTH = 50, 40, 500
PAGE_DEFAULT, PAGE_MOST = 10, 100
MOST_EVENT_TYPES = 20

CREATE_PARAMS = {
    "amount", "charge", "currency", "customer", "expand", "instructions_email", "metadata",
    "origin", "payment_intent", "reason", "refund_application_fee", "reverse_transfer",
}  # fmt: skip
PAGE_PARAMS = {"limit", "starting_after", "ending_before", "created", "expand"}
REFUND_LIST_PARAMS = PAGE_PARAMS | {"charge", "payment_intent"}
EVENT_LIST_PARAMS = PAGE_PARAMS | {"type", "types", "delivery_success"}


@dataclass
class Params:
    """A decoded form: plain fields, one level of nested fields, and lists."""

    fields: dict[str, str] = field(default_factory=dict)
    nested: dict[str, dict[str, str]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    pairs: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> set[str]:
        """The top-level names that were sent."""
        return set(self.fields) | set(self.nested) | set(self.lists)

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata that were sent; empty if none were."""
        return self.nested.get("metadata", {})

    def flat(self) -> dict[str, str]:
        """Every pair as it was sent, for the logs."""
        return dict(self.pairs)


def decode(text: str) -> Params:
    """Decode a query string or a form body (UTF-8)."""
    pairs = parse_qsl(text, keep_blank_values=True)
    params = Params(pairs=tuple(sorted(pairs)))
    for name, value in pairs:
        head, bracket, _ = name.partition("[")
        parts = PART.findall(name[len(head) :]) if bracket else []
        if not parts:
            params.fields[name] = value
        elif parts[0] == "" or (parts[0].isdigit() and head in ("expand", "types")):
            params.lists.setdefault(head, []).append(value)
        else:
            params.nested.setdefault(head, {})[parts[0]] = value
    return params


def refuse_unknown(params: Params, known: set[str]) -> None:
    """400 for the first parameter that the endpoint does not take."""
    for name in sorted(params.names - known):
        raise StripeError(
            400, f"Received unknown parameter: {name}", code="parameter_unknown", param=name
        )


def integer(name: str, value: str) -> int:
    """`value` as an integer, or Stripe's `parameter_invalid_integer`."""
    if not INTEGER.fullmatch(value):
        raise StripeError(
            400, f"Invalid integer: {value}", code="parameter_invalid_integer", param=name
        )
    return int(value)


def check_metadata(metadata: dict[str, str]) -> None:
    """Stripe's limits: 50 keys of at most 40 characters, values of at most 500."""
    if len(metadata) > METADATA_KEYS:
        raise StripeError(400, "Metadata can hold up to 50 keys", param="metadata")
    for key, value in metadata.items():
        if len(key) > METADATA_KEY_LENGTH or len(value) > METADATA_VALUE_LENGTH:
            raise StripeError(
                400,
                "Metadata keys have at most 40 characters and values at most 500",
                param=f"metadata[{key}]",
            )


def payment_missing() -> StripeError:
    """400 for a refund of nothing."""
    return StripeError(
        400,
        "One of the following params should be provided for this request: "
        "payment_intent or charge.",
        code="parameter_missing",
        param="charge",
    )


def check_refund_create(params: Params) -> None:
    """What Stripe can refuse without looking at the payment."""
    refuse_unknown(params, CREATE_PARAMS)
    targets = [name for name in ("charge", "payment_intent") if params.fields.get(name)]
    if not targets:
        raise payment_missing()
    if len(targets) > 1:
        raise StripeError(
            400,
            "You may only specify one of these parameters: charge, payment_intent.",
            param="charge",
        )
    if "amount" in params.fields and integer("amount", params.fields["amount"]) < 1:
        raise StripeError(
            400,
            "This value must be greater than or equal to 1.",
            code="parameter_invalid_integer",
            param="amount",
        )
    if params.fields.get("reason", REASONS[0]) not in REASONS:
        raise StripeError(
            400,
            "Invalid reason: must be one of duplicate, fraudulent, or requested_by_customer",
            param="reason",
        )
    check_metadata(params.metadata)


@dataclass(frozen=True)
class Paging:
    """Which slice of a list, newest first, is asked for. `created` bounds are UTC seconds."""

    limit: int
    starting_after: str | None
    ending_before: str | None
    created: dict[str, int]

    def covers(self, created: int) -> bool:
        """Whether an object made at `created` passes the filter."""
        return not (
            ("gt" in self.created and created <= self.created["gt"])
            or ("gte" in self.created and created < self.created["gte"])
            or ("lt" in self.created and created >= self.created["lt"])
            or ("lte" in self.created and created > self.created["lte"])
        )


def read_paging(params: Params, known: set[str]) -> Paging:
    """Check the parameters of a list and read its paging."""
    refuse_unknown(params, known)
    limit = integer("limit", params.fields.get("limit", str(PAGE_DEFAULT)))
    if not 1 <= limit <= PAGE_MOST:
        raise StripeError(
            400,
            f"This value must be between 1 and {PAGE_MOST}.",
            code="parameter_invalid_integer",
            param="limit",
        )
    after, before = params.fields.get("starting_after"), params.fields.get("ending_before")
    if after and before:
        raise StripeError(
            400,
            "You may only specify one of these parameters: starting_after, ending_before.",
            param="ending_before",
        )
    created = {
        name: integer(f"created[{name}]", value)
        for name, value in params.nested.get("created", {}).items()
    }
    if "created" in params.fields:
        exact = integer("created", params.fields["created"])
        created = {"gte": exact, "lte": exact}
    return Paging(limit, after or None, before or None, created)


def read_event_types(params: Params) -> list[str]:
    """The event types asked for; empty for all. `*` ends a prefix."""
    types = params.lists.get("types", [])
    single = params.fields.get("type")
    if types and single:
        raise StripeError(400, "You may only specify one of these parameters: type, types.")
    if len(types) > MOST_EVENT_TYPES:
        raise StripeError(400, f"You may specify up to {MOST_EVENT_TYPES} types.", param="types")
    return [single] if single else types
