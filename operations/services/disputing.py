"""Disputing: a dispute marks the operations of its payment, and closes none."""

from datetime import UTC, datetime

from django.db.models import Q, QuerySet

from operations.domain.dispute import (
    DisputeFacts,
    blocks_refunds,
    concerns,
    newer,
    raised_by,
)
from operations.domain.statuses import Attention, Status
from operations.models import Account, Dispute, Operation, Payment
from operations.services.learning import Learned
from operations.services.settling import lock, raise_attention


def take_dispute(
    *, account: Account, dispute: DisputeFacts, learned: Learned, now: datetime
) -> tuple[Operation | None, bool]:
    """Keep a dispute and mark the operations of its payment, inside the caller's transaction.

    The payment is found by its charge or its intent, never by an amount. Returns the first
    operation that it concerns and whether anything was new.
    """
    payments = _payments(account, dispute)
    locked = list(payments.select_for_update(no_key=True).order_by("pk"))
    is_newest = _keep(account, dispute, locked, learned.observed_at, now)
    for payment in locked:
        _note_on(payment)
    found = raised_by(dispute) if is_newest else None
    first, is_new = None, False
    for operation_id in (
        Operation.objects.filter(payment__in=locked).order_by("pk").values_list("pk", flat=True)
    ):
        operation = lock(operation_id)
        if not concerns(Status(operation.status)):
            continue
        first = first or operation
        if found is not None:
            is_new |= raise_attention(operation, found, learned=learned, now=now)
        _let_go_on(operation, now)
    return first, is_new


def _payments(account: Account, dispute: DisputeFacts) -> QuerySet[Payment]:
    by_name = Q(charge=dispute.charge) if dispute.charge else Q(pk=None)
    if dispute.payment_intent:
        by_name |= Q(payment_intent=dispute.payment_intent)
    return Payment.objects.filter(by_name, account=account)


def _keep(
    account: Account,
    dispute: DisputeFacts,
    payments: list[Payment],
    as_of: datetime,
    now: datetime,
) -> bool:
    """Keep the newest report. False for one that is older than what is kept, or the same."""
    blocks = blocks_refunds(dispute.status, dispute.refundable)
    row, made = Dispute.objects.select_for_update(no_key=True).get_or_create(
        account=account,
        provider_object_id=dispute.id,
        defaults={
            # An old report may name the intent alone; the payment knows its charge.
            "charge": dispute.charge or (payments[0].charge if payments else ""),
            "payment_intent": dispute.payment_intent,
            "status": dispute.status[:64],
            "reason": dispute.reason[:255],
            "amount": dispute.amount,
            "currency": dispute.currency[:3],
            "blocks_refunds": blocks,
            "as_of": as_of,
            "first_seen_at": now,
        },
    )
    if made:
        return True
    if not newer(
        kept_as_of=_seconds(row.as_of),
        kept_status=row.status,
        as_of=_seconds(as_of),
        status=dispute.status[:64],
    ):
        return False
    row.status, row.blocks_refunds, row.as_of = dispute.status[:64], blocks, as_of
    row.save(update_fields=["status", "blocks_refunds", "as_of"])
    return True


def _note_on(payment: Payment) -> None:
    """Whether refunds are refused now, where whoever sends reads it."""
    blocked = Dispute.objects.filter(
        account=payment.account_id, charge=payment.charge, blocks_refunds=True
    ).exists()
    if payment.refunds_blocked != blocked:
        payment.refunds_blocked = blocked
        payment.save(update_fields=["refunds_blocked"])


def _let_go_on(operation: Operation, now: datetime) -> None:
    """Let an open operation be checked at once when the dispute holds it up no more."""
    held = Attention.DISPUTED in operation.attention and operation.status == Status.OPEN
    if held and not operation.payment.refunds_blocked:
        operation.plan(now=now, next_check_at=now)


def _seconds(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp())
