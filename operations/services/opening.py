"""Opening: a new operation passes the till and the limits before it is committed.

What the provider says of the payment is read first, with no transaction open. Locks are taken in
one order: the identity, the payment, the operation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, Sum
from psycopg.types.numeric import Int8

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
from operations.domain.standing import failed_before, of_payment
from operations.domain.statuses import Status
from operations.domain.till import Till, refunded_by_others
from operations.models import Account, AuditEntry, Operation, Payment, collecting
from operations.models.statements import Statement, made
from operations.models.steps import SOMEBODY_SUBSCRIBED
from operations.providers import PaymentNotFound, ReadFailed
from operations.services.engine import Engine
from operations.services.identifying import (
    Asker,
    Identified,
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


# The row is locked until the transaction ends, whether it is new or not.
_LOCK_PAYMENT = f"""
INSERT INTO operations_payment AS kept
    (account_id, charge, payment_intent, currency, captured, refunded, disputed, read_at,
     refunded_by_others)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)
ON CONFLICT (account_id, charge) DO UPDATE
SET payment_intent = EXCLUDED.payment_intent, currency = EXCLUDED.currency,
    captured = EXCLUDED.captured, refunded = EXCLUDED.refunded,
    disputed = EXCLUDED.disputed, read_at = EXCLUDED.read_at
RETURNING id, refunded_by_others, refunds_blocked,
    nextval('operations_evidence_id_seq'), nextval('operations_providerrefund_id_seq'),
    {SOMEBODY_SUBSCRIBED}
"""  # noqa: S608 - a constant


def payment_lock(
    *, engine: Engine, account: Account, facts: PaymentFacts
) -> tuple[Payment, Statement]:
    """The payment with the provider's figures, and what locks its row until the transaction ends.

    `take_lock` tells the payment what the lock returned.
    """
    now = engine.clock()
    payment = made(
        Payment,
        account_id=account.pk,
        charge=facts.charge,
        payment_intent=facts.payment_intent,
        currency=facts.currency,
        captured=facts.captured,
        refunded=facts.refunded,
        disputed=facts.disputed,
        read_at=now,
    )
    figures = [
        Int8(account.pk),
        facts.charge,
        facts.payment_intent,
        facts.currency,
        Int8(facts.captured),
        Int8(facts.refunded),
        facts.disputed,
        now,
    ]
    return payment, (_LOCK_PAYMENT, figures)


def take_lock(payment: Payment, rows: Sequence[tuple[Any, ...]]) -> None:
    """Fill in what the lock returned; ids that were drawn with it are kept for what is learned."""
    ((payment.pk, others, blocked, evidence_id, refund_id, somebody_subscribed),) = rows
    payment.refunded_by_others, payment.refunds_blocked = others, blocked
    payment._state.adding = False
    collected = collecting.current()
    if collected is not None:
        collected.spare_ids.append(evidence_id)
        collected.spare_refund_ids.append(refund_id)
        collected.nobody_subscribed = not somebody_subscribed


def open_operation(
    *, engine: Engine, payment: Payment, prepared: Prepared, request: Identified
) -> Operation:
    """Insert the operation with its request and its audit entry.

    The caller holds the locks of the identity and the payment, and has identified the request
    under them. Raises AboveTheTill, ExposureReached, ConflictingOperation.
    """
    refuse_fallback(request)
    _check_exposure(engine, request.account, request.wish, request.asker)
    operation = _new_operation(engine, payment, prepared, request)
    _check_till(payment, operation, prepared, request)
    collecting.insert(operation)
    AuditEntry.begin_chain(operation.pk)
    record_request(engine, operation, request)
    AuditEntry.append(
        operation_id=operation.pk,
        actor=request.asker.actor,
        action="opened",
        now=operation.created_at,
        after=operation.snapshot(),
        reason=request.wish.reason,
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


def _check_till(
    payment: Payment, operation: Operation, prepared: Prepared, request: Identified
) -> None:
    """Refuse what the payment can't bear, with the payment's row locked. Raises AboveTheTill."""
    known = of_payment(request.related)
    ours = sum(row.amount for row in known)
    marks = {
        refund.id: str(mark.operation_id)
        for refund in prepared.refunds.refunds
        if (mark := our_mark(refund.metadata)) and mark.environment == operation.environment
    }
    others = refunded_by_others(
        prepared.facts,
        prepared.refunds.refunds,
        our_refund_ids=frozenset(row.provider_object_id for row in known) - {""},
        our_operation_ids=frozenset(str(row.operation_id) for row in known),
        ours=ours,
        marks=marks,
    )
    till = Till(captured=prepared.facts.captured, ours=ours, others=others)
    if operation.amount > till.free:
        raise AboveTheTill(till)
    if payment.refunded_by_others != others:
        payment.refunded_by_others = others
        collecting.update(payment, ["refunded_by_others"])


def _new_operation(
    engine: Engine, payment: Payment, prepared: Prepared, request: Identified
) -> Operation:
    wish = prepared.wish
    api_key = request.asker.api_key
    operation = made(
        Operation,
        id=prepared.operation_id,
        account_id=request.account.pk,
        payment_id=payment.pk,
        opened_by_id=api_key.pk if api_key else None,
        group=wish.group,
        reissue_of_id=failed_before(request.related, request.asked),
        kind=KIND_REFUND,
        order_id=wish.order_id,
        reference=wish.reference,
        customer_account=wish.customer_account,
        amount=wish.amount,
        currency=wish.currency,
        reason=wish.reason,
        input_hash=request.asked.input_hash,
        environment=engine.environment,
        endpoint=prepared.endpoint,
        idempotency_key=idempotency_key(prepared.operation_id),
        parameters=dict(prepared.parameters),
        created_at=engine.clock(),
    )
    operation._state.fields_cache.update(account=request.account, payment=payment)
    return operation
