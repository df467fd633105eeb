"""Opening: a new operation passes the till and the limits before it is committed.

What the provider says of the payment is read first, with no transaction open. Locks are taken in
one order: the identity, the payment, the operation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, Sum

from operations.domain.answers import PaymentFacts, RefundList
from operations.domain.exposure import Exposure, ExposureLimit, ExposureScope, passed_limit
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
from operations.models import Account, AuditEntry, Operation, Payment
from operations.providers import PaymentNotFound, ReadFailed
from operations.services.engine import Engine
from operations.services.identifying import (
    Asker,
    digest,
    failed_before,
    record_request,
    refuse_fallback,
)


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


class ExposureReached(Exception):
    """Too much is unknown already; nothing was recorded until people bring it down."""

    def __init__(self, limit: ExposureLimit) -> None:
        self.limit = limit
        super().__init__(f"Too many refunds of this {limit.scope} are unknown.")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A wish with what the provider says of its payment, ready to be opened."""

    wish: RefundInput
    operation_id: UUID
    facts: PaymentFacts
    refunds: RefundList
    parameters: Mapping[str, Any]
    endpoint: str


def prepare(*, engine: Engine, account: Account, wish: RefundInput) -> Prepared:
    """Read the payment. Calls the provider. Raises InputRefused, PaymentUnreadable."""
    provider = engine.provider(account)
    where = {"payment": wish.payment, "account": account.provider_account}
    try:
        facts = provider.read_payment(**where)
        refunds = provider.list_refunds(**where)
    except PaymentNotFound:
        raise InputRefused("payment", "The provider has no such payment.") from None
    except ReadFailed as error:
        raise PaymentUnreadable(str(error)) from error
    _check_payment(engine, wish, facts)
    operation_id = uuid7(engine.clock())
    parameters = provider.refund_parameters(
        payment=wish.payment,
        amount=wish.amount,
        reason=wish.reason,
        metadata=metadata(operation_id, engine.environment),
    )
    return Prepared(
        wish=wish,
        operation_id=operation_id,
        facts=facts,
        refunds=refunds,
        parameters=parameters,
        endpoint=provider.endpoint,
    )


def lock_payment(*, engine: Engine, account: Account, facts: PaymentFacts) -> Payment:
    """The payment's row with the provider's figures, locked until the transaction ends."""
    figures: dict[str, Any] = {
        "payment_intent": facts.payment_intent,
        "currency": facts.currency,
        "captured": facts.captured,
        "refunded": facts.refunded,
        "disputed": facts.disputed,
        "read_at": engine.clock(),
    }
    payment, created = Payment.objects.select_for_update(no_key=True).get_or_create(
        account=account, charge=facts.charge, defaults=figures
    )
    if not created:
        for name, value in figures.items():
            setattr(payment, name, value)
        payment.save(update_fields=list(figures))
    return payment


def open_operation(
    *, engine: Engine, account: Account, payment: Payment, prepared: Prepared, asker: Asker
) -> Operation | None:
    """Insert the operation with its request and its audit entry.

    The caller holds the locks of the identity and the payment. None when an unresolved operation
    holds this identity: the database picks the winner. Raises AboveTheTill, ExposureReached,
    ConflictingOperation.
    """
    wish = prepared.wish
    refuse_fallback(account, wish)
    _check_exposure(engine, account, wish, asker)
    operation = _insert(engine, account, payment, prepared, asker)
    if operation is None:
        return None
    _check_till(payment, operation, prepared)
    record_request(engine, operation, wish, asker)
    AuditEntry.append(
        operation_id=operation.pk,
        actor=asker.actor,
        action="opened",
        now=operation.created_at,
        after=operation.snapshot(),
        reason=wish.reason,
    )
    return operation


def _check_payment(engine: Engine, wish: RefundInput, facts: PaymentFacts) -> None:
    if not facts.charge:
        raise InputRefused("payment", "This payment has no charge that could be refunded.")
    if facts.currency != wish.currency:
        raise InputRefused(
            "currency", f"The payment is in {facts.currency.upper()}, not {wish.currency.upper()}."
        )
    if facts.livemode != engine.livemode:
        raise InputRefused("payment", "The payment belongs to the other mode (live or test).")


def _check_exposure(engine: Engine, account: Account, wish: RefundInput, asker: Asker) -> None:
    """Refuse while too much is unknown already. Raises ExposureReached."""
    if not engine.exposure_limits:
        return
    scopes = {ExposureScope.ACCOUNT: Q(account=account)}
    if asker.api_key is not None:
        scopes[ExposureScope.AGENT] = Q(opened_by=asker.api_key)
    if wish.customer_account:
        scopes[ExposureScope.CUSTOMER] = Q(account=account, customer_account=wish.customer_account)
    limited = {limit.scope for limit in engine.exposure_limits}
    exposures = [_exposure(scope, rows) for scope, rows in scopes.items() if scope in limited]
    limit = passed_limit(exposures, engine.exposure_limits)
    if limit is not None:
        raise ExposureReached(limit)


def _exposure(scope: ExposureScope, rows: Q) -> Exposure:
    unknown = (
        Operation.objects.filter(rows, status=Status.UNKNOWN)
        .values("currency")
        .annotate(operations=Count("pk"), amount=Sum("amount"))
    )
    found: Sequence[Mapping[str, Any]] = list(unknown)
    return Exposure(
        scope=scope,
        operations=sum(row["operations"] for row in found),
        amounts={row["currency"]: row["amount"] for row in found},
    )


def _check_till(payment: Payment, operation: Operation, prepared: Prepared) -> None:
    """Refuse what the payment can't bear, with the payment's row locked. Raises AboveTheTill."""
    others_of_ours = payment.operations.exclude(pk=operation.pk).filter(
        status__in=[*UNRESOLVED, Status.SUCCEEDED]
    )
    known = list(others_of_ours.values_list("pk", "provider_object_id", "amount"))
    ours = sum(amount for _, _, amount in known)
    marks = {
        refund.id: str(mark.operation_id)
        for refund in prepared.refunds.refunds
        if (mark := our_mark(refund.metadata)) and mark.environment == operation.environment
    }
    others = refunded_by_others(
        prepared.facts,
        prepared.refunds.refunds,
        our_refund_ids=frozenset(refund_id for _, refund_id, _ in known if refund_id),
        our_operation_ids=frozenset(str(pk) for pk, _, _ in known),
        ours=ours,
        marks=marks,
    )
    till = Till(captured=prepared.facts.captured, ours=ours, others=others)
    if operation.amount > till.free:
        raise AboveTheTill(till)
    if payment.refunded_by_others != others:
        payment.refunded_by_others = others
        payment.save(update_fields=["refunded_by_others"])


def _insert(
    engine: Engine, account: Account, payment: Payment, prepared: Prepared, asker: Asker
) -> Operation | None:
    """Insert, unless an unresolved operation holds this identity."""
    wish = prepared.wish
    now = engine.clock()
    Operation.objects.bulk_create(
        [
            Operation(
                id=prepared.operation_id,
                account=account,
                payment=payment,
                opened_by=asker.api_key,
                group=wish.group,
                reissue_of=failed_before(account, wish),
                kind=KIND_REFUND,
                order_id=wish.order_id,
                reference=wish.reference,
                customer_account=wish.customer_account,
                amount=wish.amount,
                currency=wish.currency,
                reason=wish.reason,
                input_hash=digest(account, wish),
                environment=engine.environment,
                endpoint=prepared.endpoint,
                idempotency_key=idempotency_key(prepared.operation_id),
                parameters=dict(prepared.parameters),
                created_at=now,
            )
        ],
        ignore_conflicts=True,
    )
    return (
        Operation.objects.select_related("payment", "account")
        .filter(pk=prepared.operation_id)
        .first()
    )
