"""Requesting: from one time that somebody asked to the one operation it stands for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet, Sum

from operations.domain.answers import PaymentFacts, RefundList
from operations.domain.audit import Actor
from operations.domain.budgets import CallBudget
from operations.domain.identity import (
    KIND_REFUND,
    RefundInput,
    idempotency_key,
    metadata,
    uuid7,
)
from operations.domain.matching import our_mark
from operations.domain.statuses import UNRESOLVED, Status
from operations.domain.till import Till, refunded_by_others
from operations.models import (
    Account,
    ApiKey,
    Attempt,
    AuditEntry,
    Operation,
    Payment,
    Request,
    RequestToken,
)
from operations.providers import PaymentNotFound, Provider, ReadFailed
from operations.services.accounts import UnknownAccount, account_for
from operations.services.engine import Engine
from operations.services.sending import (
    continue_sending,
    new_holder,
    send_until_decided,
    start_attempt,
)
from operations.services.settling import lock


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who asks. `token` is the caller's own name for what it wants done."""

    actor: Actor
    api_key: ApiKey | None
    token: str = ""
    tool_call_id: str = ""
    agent_run_id: str = ""


class ConflictingOperation(Exception):
    """The same order and reference has an unresolved refund with other terms."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        super().__init__(f"Order {operation.order_id} has an unresolved refund with other terms.")


class ReusedWithOtherInput(Exception):
    """A token or a tool call that stands for an operation came with another input."""

    def __init__(self, operation: Operation, what: str) -> None:
        self.operation = operation
        self.what = what
        super().__init__(f"This {what} was used before with another input.")


class InputRefused(Exception):
    """One field of the request can't be taken; nothing was recorded."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class PaymentUnreadable(Exception):
    """The payment could not be read at the provider; nothing was recorded or sent."""


class AboveTheTill(InputRefused):
    """More than what is left of the payment. `till` in the payment's Stripe unit."""

    def __init__(self, till: Till) -> None:
        self.till = till
        super().__init__(
            "amount",
            f"Of the {till.captured} captured, {till.free} can still be refunded; "
            f"{till.ours + till.others} is refunded or may be.",
        )


def request_refund(*, engine: Engine, wish: RefundInput, asker: Asker) -> Operation:
    """Find or open the operation that is asked for, send what may be sent, return it as it stands.

    Raises InProgress, ConflictingOperation, ReusedWithOtherInput, InputRefused and
    PaymentUnreadable. With the last two nothing was recorded or sent.
    """
    account = _account(engine, wish)
    call = CallBudget.start(engine.budget, engine.clock())
    joined = _join(engine=engine, account=account, wish=wish, asker=asker)
    if joined is None:
        opened = _open_or_join(engine=engine, account=account, wish=wish, asker=asker)
        if isinstance(opened, Attempt):
            continue_sending(engine=engine, attempt=opened, actor=asker.actor, call=call)
            return _as_it_stands(opened.operation_id)
        joined = opened
    if joined.status == Status.OPEN:
        send_until_decided(engine=engine, operation_id=joined.pk, actor=asker.actor, call=call)
    return _as_it_stands(joined.pk)


def _account(engine: Engine, wish: RefundInput) -> Account:
    try:
        return account_for(engine=engine, name=wish.account)
    except UnknownAccount:
        raise InputRefused("account", "There is no account of this name.") from None


def _as_it_stands(operation_id: UUID) -> Operation:
    return Operation.objects.select_related("payment", "account").get(pk=operation_id)


@transaction.atomic
def _join(*, engine: Engine, account: Account, wish: RefundInput, asker: Asker) -> Operation | None:
    """The operation that this request stands for already, with the request recorded; else None."""
    found = _standing_for(engine, account, wish, asker)
    if found is None:
        return None
    operation = lock(found.pk)
    _record_request(engine, operation, wish, asker)
    return operation


def _open_or_join(
    *, engine: Engine, account: Account, wish: RefundInput, asker: Asker
) -> Attempt | Operation:
    """Read the payment, then open the operation with its first attempt, or join the winner's."""
    provider = engine.provider(account)
    facts, refunds = _read_payment(provider, account, wish)
    _check_payment(engine, wish, facts)
    operation_id = uuid7(engine.clock())
    parameters = provider.refund_parameters(
        payment=wish.payment,
        amount=wish.amount,
        reason=wish.reason,
        metadata=metadata(operation_id, engine.environment),
    )
    with transaction.atomic():
        payment = _locked_payment(engine, account, facts)
        joined = _join(engine=engine, account=account, wish=wish, asker=asker)
        if joined is not None:
            return joined
        operation = _insert(
            engine, operation_id, account, payment, wish, parameters, provider.endpoint
        )
        if operation is not None:
            _check_till(payment, operation, facts, refunds)
            _record_request(engine, operation, wish, asker)
            AuditEntry.append(
                operation_id=operation.pk,
                actor=asker.actor,
                action="opened",
                now=operation.created_at,
                after=operation.snapshot(),
                reason=wish.reason,
            )
            return start_attempt(engine, operation, holder=new_holder(), now=operation.created_at)
    # Another payment's request for the same order won the race between the look and the insert.
    joined = _join(engine=engine, account=account, wish=wish, asker=asker)
    if joined is None:
        return _open_or_join(engine=engine, account=account, wish=wish, asker=asker)
    return joined


def _read_payment(
    provider: Provider, account: Account, wish: RefundInput
) -> tuple[PaymentFacts, RefundList]:
    """The payment's figures and its refunds, as the provider has them now."""
    where = {"payment": wish.payment, "account": account.provider_account}
    try:
        return provider.read_payment(**where), provider.list_refunds(**where)
    except PaymentNotFound:
        raise InputRefused("payment", "The provider has no such payment.") from None
    except ReadFailed as error:
        raise PaymentUnreadable(str(error)) from error


def _check_payment(engine: Engine, wish: RefundInput, facts: PaymentFacts) -> None:
    if not facts.charge:
        raise InputRefused("payment", "This payment has no charge that could be refunded.")
    if facts.currency != wish.currency:
        raise InputRefused(
            "currency",
            f"The payment is in {facts.currency.upper()}, not {wish.currency.upper()}.",
        )
    if facts.livemode != engine.livemode:
        raise InputRefused("payment", "The payment belongs to the other mode (live or test).")


def _locked_payment(engine: Engine, account: Account, facts: PaymentFacts) -> Payment:
    """The payment's row with the provider's figures, locked until the transaction ends."""
    figures: dict[str, Any] = {
        "payment_intent": facts.payment_intent,
        "currency": facts.currency,
        "captured": facts.captured,
        "refunded": facts.refunded,
        "disputed": facts.disputed,
        "read_at": engine.clock(),
    }
    payment, created = Payment.objects.select_for_update().get_or_create(
        account=account, charge=facts.charge, defaults=figures
    )
    if not created:
        for name, value in figures.items():
            setattr(payment, name, value)
        payment.save(update_fields=list(figures))
    return payment


def _check_till(
    payment: Payment, operation: Operation, facts: PaymentFacts, refunds: RefundList
) -> None:
    """Refuse what the payment can't bear, with the payment's row locked. Raises AboveTheTill."""
    others_of_ours = payment.operations.exclude(pk=operation.pk).filter(
        status__in=[*UNRESOLVED, Status.SUCCEEDED]
    )
    ours = others_of_ours.aggregate(total=Sum("amount"))["total"] or 0
    known = list(others_of_ours.values_list("pk", "provider_object_id"))
    marks = {
        refund.id: str(mark.operation_id)
        for refund in refunds.refunds
        if (mark := our_mark(refund.metadata)) and mark.environment == operation.environment
    }
    others = refunded_by_others(
        facts,
        refunds.refunds,
        our_refund_ids=frozenset(refund_id for _, refund_id in known if refund_id),
        our_operation_ids=frozenset(str(pk) for pk, _ in known),
        ours=ours,
        marks=marks,
    )
    till = Till(captured=facts.captured, ours=ours, others=others)
    if operation.amount > till.free:
        raise AboveTheTill(till)
    payment.refunded_by_others = others
    payment.save(update_fields=["refunded_by_others"])


def _insert(
    engine: Engine,
    operation_id: UUID,
    account: Account,
    payment: Payment,
    wish: RefundInput,
    parameters: Mapping[str, Any],
    endpoint: str,
) -> Operation | None:
    """Insert, unless an unresolved operation holds this identity: the database picks the winner."""
    now = engine.clock()
    Operation.objects.bulk_create(
        [
            Operation(
                id=operation_id,
                account=account,
                payment=payment,
                kind=KIND_REFUND,
                order_id=wish.order_id,
                reference=wish.reference,
                customer_account=wish.customer_account,
                amount=wish.amount,
                currency=wish.currency,
                reason=wish.reason,
                input_hash=_digest(account, wish),
                environment=engine.environment,
                endpoint=endpoint,
                idempotency_key=idempotency_key(operation_id),
                parameters=dict(parameters),
                created_at=now,
            )
        ],
        ignore_conflicts=True,
    )
    return Operation.objects.select_related("payment", "account").filter(pk=operation_id).first()


def _standing_for(
    engine: Engine, account: Account, wish: RefundInput, asker: Asker
) -> Operation | None:
    """The operation that a tool call, a token or the identity names, checked for its input.

    Raises ReusedWithOtherInput, ConflictingOperation.
    """
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
    return operation.input_hash == _digest(account, wish) and wish.payment in (
        payment.charge,
        payment.payment_intent,
    )


def _digest(account: Account, wish: RefundInput) -> str:
    return replace(wish, account=account.name).digest()


def _record_request(engine: Engine, operation: Operation, wish: RefundInput, asker: Asker) -> None:
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
                input_hash=_digest(operation.account, wish),
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
