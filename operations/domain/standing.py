"""Which operation a request stands for, out of those that it may have to do with."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from operations.domain.statuses import UNRESOLVED, Status


class Tie(StrEnum):
    """What ties an operation to a request."""

    TOOL_CALL = "tool call"
    TOKEN = "token"  # noqa: S105 - a word, no secret
    ORDER = "order"
    PAYMENT = "payment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """An operation that a request may have to do with. Amount in the Stripe unit, times in UTC.

    `payment_names` are the charge and the payment intent, two names of one payment.
    `has_refund`: the provider showed a refund of it that neither failed nor was canceled.
    """

    tie: Tie
    operation_id: UUID
    account_id: int
    livemode: bool
    status: Status
    input_hash: str
    payment_names: tuple[str, str]
    amount: int
    currency: str
    has_refund: bool
    provider_object_id: str
    created_at: datetime
    settled_at: datetime | None
    lease_expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request in the terms that are compared. `payment` as the caller named it.

    Without a token, a refund just like it that succeeded after `repeated_since` (UTC) is given
    as the answer again.
    """

    account_id: int
    livemode: bool
    input_hash: str
    payment: str
    amount: int
    currency: str
    has_token: bool
    repeated_since: datetime


@dataclass(frozen=True, slots=True)
class Stands:
    """The request stands for this operation."""

    operation_id: UUID


@dataclass(frozen=True, slots=True)
class Reused:
    """What names this operation, a tool call or a token, came with another input."""

    operation_id: UUID
    what: Tie


@dataclass(frozen=True, slots=True)
class Conflicts:
    """This operation of the same order and reference has other terms, or another account."""

    operation_id: UUID


def stands_for(related: Sequence[Related], asked: Asked) -> Stands | Reused | Conflicts | None:
    """The operation that a request stands for already; None when it asks for a new one.

    In this order: a tool call that was seen before; a token; an unresolved operation of the same
    order and reference; one that was closed as failed although its refund turned up, which people
    have to look at first; without a token, a refund just like it that succeeded a short while ago,
    because nothing tells a second wish from a caller who never saw the first answer. When only the
    customer or the payment differ from that one, it is a conflict: a caller who adds or drops a
    field on a retry must not be paid twice.
    """
    named = {row.tie: row for row in related if row.tie in (Tie.TOOL_CALL, Tie.TOKEN)}
    for tie in (Tie.TOOL_CALL, Tie.TOKEN):
        if tie in named and not _is_same(named[tie], asked):
            return Reused(named[tie].operation_id, tie)
    if named:
        first = named.get(Tie.TOOL_CALL) or named[Tie.TOKEN]
        token = named.get(Tie.TOKEN, first)
        if token.operation_id != first.operation_id:
            return Reused(token.operation_id, Tie.TOKEN)
        return Stands(first.operation_id)
    here = [row for row in _of_order(related) if row.account_id == asked.account_id]
    for row in here:
        if row.status in UNRESOLVED:
            same = _is_same(row, asked)
            return Stands(row.operation_id) if same else Conflicts(row.operation_id)
    contradicted = next((row for row in here if _is_contradicted(row)), None)
    if contradicted is not None:
        return Conflicts(contradicted.operation_id)
    return None if asked.has_token else _repeated(here, asked)


def _repeated(here: Sequence[Related], asked: Asked) -> Stands | Conflicts | None:
    """What a request without a token repeats, out of what succeeded a short while ago."""
    recent = [
        row
        for row in here
        if row.status is Status.SUCCEEDED
        and row.settled_at is not None
        and row.settled_at >= asked.repeated_since
        and (row.amount, row.currency) == (asked.amount, asked.currency)
    ]
    same = [row for row in recent if _is_same(row, asked)]
    newest = max(same or recent, key=lambda row: row.created_at, default=None)
    if newest is None:
        return None
    return Stands(newest.operation_id) if same else Conflicts(newest.operation_id)


def held_elsewhere(related: Iterable[Related], asked: Asked) -> UUID | None:
    """An operation of this order on another account that has not failed.

    Trying elsewhere what may have happened there is how a refund is made twice.
    """
    for row in _of_order(related):
        elsewhere = row.account_id != asked.account_id and row.livemode == asked.livemode
        if elsewhere and (row.status is not Status.FAILED or _is_contradicted(row)):
            return row.operation_id
    return None


def failed_before(related: Iterable[Related], asked: Asked) -> UUID | None:
    """The failed operation that a new one of the same order and reference is made in place of."""
    failed = [
        row
        for row in _of_order(related)
        if row.livemode == asked.livemode and row.status is Status.FAILED
    ]
    newest = max(failed, key=lambda row: row.created_at, default=None)
    return newest.operation_id if newest else None


def of_payment(related: Iterable[Related]) -> list[Related]:
    """The operations that hold, or may hold, something of the payment."""
    return [row for row in related if row.tie is Tie.PAYMENT and row.status is not Status.FAILED]


def _of_order(related: Iterable[Related]) -> list[Related]:
    return [row for row in related if row.tie is Tie.ORDER]


def _is_contradicted(row: Related) -> bool:
    """Failed for us, and yet the provider has its refund."""
    return row.status is Status.FAILED and row.has_refund


def _is_same(row: Related, asked: Asked) -> bool:
    """The frozen input, and the same payment under any of its names."""
    return row.input_hash == asked.input_hash and asked.payment in row.payment_names
