"""Identifying: which operation a request stands for, and keeping the request with it.

In this order: a tool call that was seen before; a token; an unresolved operation of the same order
and reference; without a token, a refund just like it that succeeded a short while ago.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import QuerySet

from operations.domain.audit import Actor
from operations.domain.identity import KIND_REFUND, RefundInput
from operations.domain.statuses import UNRESOLVED, Status
from operations.models import Account, ApiKey, Operation, Request, RequestToken
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

    def for_part(self, number: int) -> "Asker":
        """The same asker, asking for one part of a group."""

        def part(text: str) -> str:
            return f"{text}#{number}" if text else ""

        return replace(self, token=part(self.token), tool_call_id=part(self.tool_call_id))


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


@transaction.atomic
def join(*, engine: Engine, account: Account, wish: RefundInput, asker: Asker) -> Operation | None:
    """The operation that this request stands for already, with the request recorded; else None.

    Raises ReusedWithOtherInput, ConflictingOperation.
    """
    found = _standing_for(engine, account, wish, asker)
    if found is None:
        return None
    operation = lock(found.pk)
    record_request(engine, operation, wish, asker)
    return operation


def lock_identity(wish: RefundInput) -> None:
    """Let one request at a time open something for this order and reference, on any account."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
            [f"refund:{len(wish.order_id)}:{wish.order_id}:{wish.reference}"],
        )


def refuse_fallback(account: Account, wish: RefundInput) -> None:
    """Refuse while another account holds a refund of this order that has not failed.

    Trying elsewhere what may have happened here is how a refund is made twice. The caller holds
    the identity's lock. Raises ConflictingOperation.
    """
    elsewhere = (
        Operation.objects.filter(
            order_id=wish.order_id,
            reference=wish.reference,
            account__livemode=account.livemode,
        )
        .exclude(account=account)
        .exclude(status=Status.FAILED)
        .first()
    )
    if elsewhere is not None:
        raise ConflictingOperation(elsewhere)


def failed_before(account: Account, wish: RefundInput) -> Operation | None:
    """The failed operation that a new one of the same order and reference is made in place of."""
    return (
        Operation.objects.filter(
            order_id=wish.order_id,
            reference=wish.reference,
            account__livemode=account.livemode,
            status=Status.FAILED,
        )
        .order_by("-created_at")
        .first()
    )


def digest(account: Account, wish: RefundInput) -> str:
    """The hash of the frozen input, with the account by our name."""
    return replace(wish, account=account.name).digest()


def record_request(engine: Engine, operation: Operation, wish: RefundInput, asker: Asker) -> None:
    """Write down who asked. A tool call or a token that is known already is not written again.

    Raises ReusedWithOtherInput when a request that ran at the same time took the tool call or
    the token for another operation.
    """
    now = engine.clock()
    Request.objects.bulk_create(
        [
            Request(
                operation=operation,
                api_key=asker.api_key,
                tool_call_id=asker.tool_call_id,
                agent_run_id=asker.agent_run_id,
                input_hash=digest(operation.account, wish),
                payment_asked=wish.payment,
                received_at=now,
            )
        ],
        ignore_conflicts=bool(asker.tool_call_id),
    )
    called = _by_tool_call(asker)
    if called is not None and called.pk != operation.pk:
        raise ReusedWithOtherInput(called, "tool call")
    if not asker.token:
        return
    RequestToken.objects.bulk_create(
        [
            RequestToken(
                account=operation.account,
                customer_account=wish.customer_account,
                kind=KIND_REFUND,
                token=asker.token,
                operation=operation,
                created_at=now,
            )
        ],
        ignore_conflicts=True,
    )
    named = _by_token(operation.account, wish, asker)
    if named is not None and named.pk != operation.pk:
        raise ReusedWithOtherInput(named, "token")


@transaction.atomic
def forget_old_tokens(*, engine: Engine) -> int:
    """Remove the tokens that were kept long enough, of settled operations. Returns how many."""
    before = engine.clock() - timedelta(seconds=engine.token_retention_s)
    old = RequestToken.objects.filter(created_at__lt=before).exclude(
        operation__status__in=UNRESOLVED
    )
    return old.delete()[0]


def _standing_for(
    engine: Engine, account: Account, wish: RefundInput, asker: Asker
) -> Operation | None:
    called = _by_tool_call(asker)
    if called is not None:
        _require_same_input(called, account, wish, "tool call")
        return called
    named = _by_token(account, wish, asker)
    if named is not None:
        _require_same_input(named, account, wish, "token")
        return named
    unresolved = _same_identity(account, wish).filter(status__in=UNRESOLVED).first()
    if unresolved is not None:
        if not _is_same_input(unresolved, account, wish):
            raise ConflictingOperation(unresolved)
        return unresolved
    return None if asker.token else _repeated(engine, account, wish)


def _repeated(engine: Engine, account: Account, wish: RefundInput) -> Operation | None:
    """A refund just like this one that succeeded a short while ago.

    Without a token nothing tells a second wish from a caller who never saw the first answer, so
    the answer is given again. Another `reference` or a token makes a second refund.
    """
    since = engine.clock() - timedelta(seconds=engine.repeat_window_s)
    recent = (
        _same_identity(account, wish)
        .filter(status=Status.SUCCEEDED, settled_at__gte=since)
        .order_by("-created_at")
    )
    return next((row for row in recent if _is_same_input(row, account, wish)), None)


def _by_tool_call(asker: Asker) -> Operation | None:
    if not asker.tool_call_id:
        return None
    request = (
        Request.objects.filter(
            api_key=asker.api_key,
            agent_run_id=asker.agent_run_id,
            tool_call_id=asker.tool_call_id,
        )
        .select_related("operation__payment")
        .first()
    )
    return request.operation if request else None


def _by_token(account: Account, wish: RefundInput, asker: Asker) -> Operation | None:
    if not asker.token:
        return None
    token = (
        RequestToken.objects.filter(
            account=account,
            customer_account=wish.customer_account,
            kind=KIND_REFUND,
            token=asker.token,
        )
        .select_related("operation__payment")
        .first()
    )
    return token.operation if token else None


def _same_identity(account: Account, wish: RefundInput) -> QuerySet[Operation]:
    return Operation.objects.filter(
        account=account, order_id=wish.order_id, reference=wish.reference
    ).select_related("payment")


def _require_same_input(
    operation: Operation, account: Account, wish: RefundInput, what: str
) -> None:
    if not _is_same_input(operation, account, wish):
        raise ReusedWithOtherInput(operation, what)


def _is_same_input(operation: Operation, account: Account, wish: RefundInput) -> bool:
    """The frozen input, and the same payment under any of its names."""
    payment = operation.payment
    return operation.input_hash == digest(account, wish) and wish.payment in (
        payment.charge,
        payment.payment_intent,
    )
