"""Identifying: which operation a request stands for, and keeping the request with it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from operations.domain.access import Accounts, within
from operations.domain.audit import Actor
from operations.domain.identity import KIND_REFUND, RefundInput
from operations.domain.standing import (
    Asked,
    Conflicts,
    Related,
    Reused,
    Stands,
    Tie,
    held_elsewhere,
    stands_for,
)
from operations.domain.statuses import UNRESOLVED
from operations.models import Account, ApiKey, Operation, Request, RequestToken, collecting
from operations.models.statements import Statement, made, run, run_together
from operations.queries.standing import asking, related_to
from operations.services.accounts import DEFAULT_ACCOUNT, UnknownAccount, account_for
from operations.services.engine import Engine
from operations.services.settling import lock


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who asks. `token` is the caller's own name for what it wants done."""

    actor: Actor
    api_key: ApiKey | None
    token: str = ""
    tool_call_id: str = ""
    agent_run_id: str = ""

    @property
    def accounts(self) -> Accounts:
        """Where the asker may ask; None: everywhere."""
        return self.api_key.accounts if self.api_key else None

    def for_part(self, number: int) -> "Asker":
        """The same asker, asking for one part of a group."""

        def part(text: str) -> str:
            return f"{text}#{number}" if text else ""

        return replace(self, token=part(self.token), tool_call_id=part(self.tool_call_id))


class AccountOutOfReach(Exception):
    """The key is for other accounts. Nothing was recorded or sent."""


@dataclass(frozen=True, kw_only=True)
class Identified:
    """A request and what it may have to do with. `locked`: the rows that its locks returned."""

    account: Account
    wish: RefundInput
    asker: Asker
    asked: Asked
    related: list[Related]
    locked: list[list[tuple[Any, ...]]]


class ConflictingOperation(Exception):
    """The same order and reference has a refund with other terms, or on another account."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        super().__init__(f"Order {operation.order_id} has a refund with other terms.")


class ReusedWithOtherInput(Exception):
    """A token or a tool call that stands for an operation came with another input."""

    def __init__(self, operation: Operation, what: str) -> None:
        self.operation = operation
        self.what = what
        super().__init__(f"This {what} was used before with another input.")


def identify(
    *,
    engine: Engine,
    wish: RefundInput,
    asker: Asker,
    charge: str = "",
    after: Sequence[Statement] = (),
) -> Identified:
    """Find what a request may have to do with. Changes nothing.

    With `charge` the operations of that payment are found too. `after`: locks to take first, in
    the same round trip. Raises UnknownAccount, AccountOutOfReach.
    """
    question = asking(
        wish,
        livemode=engine.livemode,
        account=wish.account or DEFAULT_ACCOUNT,
        api_key_id=asker.api_key.pk if asker.api_key else None,
        tool_call_id=asker.tool_call_id,
        agent_run_id=asker.agent_run_id,
        token=asker.token,
        charge=charge,
    )
    *locked, rows = run_together(*after, question) if after else [run(*question)]
    account, related = related_to(question, rows)
    try:
        account = account or account_for(engine=engine, name=wish.account)
    except UnknownAccount:
        # To a key of single accounts there are no others, whether they exist or not.
        if asker.accounts is not None:
            raise AccountOutOfReach from None
        raise
    if not within(asker.accounts, account.pk):
        raise AccountOutOfReach
    asked = Asked(
        account_id=account.pk,
        livemode=account.livemode,
        input_hash=digest(account, wish),
        payment=wish.payment,
        amount=wish.amount,
        currency=wish.currency,
        has_token=bool(asker.token),
        repeated_since=engine.clock() - timedelta(seconds=engine.repeat_window_s),
    )
    return Identified(
        account=account, wish=wish, asker=asker, asked=asked, related=related, locked=locked
    )


def join(engine: Engine, request: Identified) -> Operation | None:
    """The operation that this request stands for already, with the request recorded; else None.

    Raises ReusedWithOtherInput, ConflictingOperation.
    """
    match stands_for(request.related, request.asked):
        case None:
            return None
        case Reused(operation_id, what):
            raise ReusedWithOtherInput(_whole(operation_id), what)
        case Conflicts(operation_id):
            raise ConflictingOperation(_whole(operation_id))
        case Stands(operation_id):
            with collecting.collecting():
                operation = lock(operation_id)
                record_request(engine, operation, request)
            return operation


def identity_lock(wish: RefundInput) -> Statement:
    """What lets one request at a time open something for this order and reference.

    On any account, until the transaction ends.
    """
    identity = f"refund:{len(wish.order_id)}:{wish.order_id}:{wish.reference}"
    return "SELECT pg_advisory_xact_lock(hashtextextended($1, 0)) IS NULL", [identity]


def refuse_fallback(request: Identified) -> None:
    """Refuse while another account holds a refund of this order that has not failed.

    The caller holds the identity's lock. Raises ConflictingOperation.
    """
    elsewhere = held_elsewhere(request.related, request.asked)
    if elsewhere is not None:
        raise ConflictingOperation(_whole(elsewhere))


def digest(account: Account, wish: RefundInput) -> str:
    """The hash of the frozen input, with the account by our name."""
    return replace(wish, account=account.name).digest()


def record_request(engine: Engine, operation: Operation, request: Identified) -> None:
    """Write down who asked. A tool call or a token that is known already is not written again.

    When one that was unknown is taken at the same moment, the writes fail with IntegrityError.
    """
    asker = request.asker
    now = engine.clock()
    known = {row.tie for row in request.related}
    if Tie.TOOL_CALL not in known:
        collecting.insert(
            made(
                Request,
                operation_id=operation.pk,
                api_key_id=asker.api_key.pk if asker.api_key else None,
                tool_call_id=asker.tool_call_id,
                agent_run_id=asker.agent_run_id,
                input_hash=request.asked.input_hash,
                payment_asked=request.wish.payment,
                received_at=now,
            )
        )
    if asker.token and Tie.TOKEN not in known:
        collecting.insert(
            made(
                RequestToken,
                account_id=operation.account_id,
                customer_account=request.wish.customer_account,
                kind=KIND_REFUND,
                token=asker.token,
                operation_id=operation.pk,
                created_at=now,
            )
        )


@transaction.atomic
def forget_old_tokens(*, engine: Engine) -> int:
    """Remove the tokens that were kept long enough, of settled operations. Returns how many."""
    before = engine.clock() - timedelta(seconds=engine.token_retention_s)
    old = RequestToken.objects.filter(created_at__lt=before).exclude(
        operation__status__in=UNRESOLVED
    )
    return old.delete()[0]


def _whole(operation_id: UUID) -> Operation:
    return Operation.objects.select_related("payment", "account").get(pk=operation_id)
