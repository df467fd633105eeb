"""The worker of the bench: the product's tasks, and the baseline's, which is one task an event.

The baseline keeps all that ours keeps, the way Django projects do it: each event is a task of its
own, reads and writes its rows one by one through the ORM, and commits.
"""

import logging
from datetime import UTC, datetime

from celery import shared_task
from django.db import transaction

from operations.domain.matching import our_mark
from operations.domain.statuses import Fact
from operations.models import (
    AuditEntry,
    EventHandling,
    Evidence,
    EvidenceSource,
    Handling,
    InboxItem,
    Operation,
    ProviderRefund,
    RefundReport,
    WebhookEvent,
)
from operations.providers.stripe_events import event_facts
from operations.services.actors import webhook_actor

# Two lines a task would be the baseline's alone to write.
logging.getLogger("celery").setLevel(logging.WARNING)


@shared_task(name="bench.handle_one")
@transaction.atomic
def handle_one(event_pk: int) -> None:
    """Match and settle by one event."""
    now = datetime.now(UTC)
    item = InboxItem.objects.select_for_update().get(pk=event_pk)
    event = WebhookEvent.objects.get(pk=event_pk)
    facts = event_facts(event.payload)
    (refund,) = facts.refunds
    mark = our_mark(refund.metadata)
    assert mark is not None  # noqa: S101 - every event of the bench has one
    operation = (
        Operation.objects.select_for_update(of=("self",))
        .select_related("payment", "account")
        .get(pk=mark.operation_id)
    )
    seen, _ = ProviderRefund.objects.get_or_create(
        account=operation.account,
        provider_object_id=refund.id,
        defaults={
            "operation": operation,
            "status": refund.status,
            "amount": refund.amount,
            "currency": refund.currency,
            "charge": refund.charge,
            "payment_intent": refund.payment_intent,
            "metadata": dict(refund.metadata),
            "status_since": event.provider_created_at,
            "first_seen_at": now,
            "last_seen_at": now,
        },
    )
    RefundReport.objects.create(
        refund=seen,
        source=EvidenceSource.WEBHOOK,
        told_by=facts.id,
        status=refund.status,
        amount=refund.amount,
        currency=refund.currency,
        told_at=event.provider_created_at or now,
        recorded_at=now,
        fingerprint=f"{event_pk:032}",
    )
    evidence = Evidence.objects.create(
        operation=operation,
        source=EvidenceSource.WEBHOOK,
        event=event,
        provider_object_id=refund.id,
        provider_status=refund.status,
        amount=refund.amount,
        currency=refund.currency,
        summary=f"{facts.type}: refund {refund.id} is {refund.status}.",
        facts={"event_id": facts.id, "type": facts.type, "refund": refund.id},
        observed_at=event.provider_created_at or now,
        recorded_at=now,
        actor_kind="webhook",
        actor_name=f"Webhook {facts.id}",
    )
    before = operation.snapshot()
    operation.take(
        Fact.PROVIDER_SUCCEEDED,
        now=now,
        provider_object_id=refund.id,
        provider_status=refund.status,
        next_check_at=None,
    )
    AuditEntry.append(
        operation_id=operation.pk,
        actor=webhook_actor(facts.id),
        action=str(Fact.PROVIDER_SUCCEEDED),
        now=now,
        before=before,
        after=operation.snapshot(),
        reason=evidence.summary,
        evidence_id=evidence.pk,
    )
    EventHandling.of(item, Handling.APPLIED, now=now, operation=operation).save(force_insert=True)
    item.delete()
