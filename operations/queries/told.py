"""What is stored about an operation's payment that belongs to no operation yet."""

from collections.abc import Collection

from django.db.models import Exists, OuterRef, Q, QuerySet

from operations.models import (
    EventHandling,
    EvidenceSource,
    InboxItem,
    Operation,
    OrphanEvent,
    ProviderRefund,
    RefundReport,
    WebhookEvent,
)


def refunds_without_operation(operation: Operation) -> QuerySet[ProviderRefund]:
    """The provider's refunds of its payment that are nobody's, oldest first."""
    payment = operation.payment
    of_it = Q(charge=payment.charge)
    if payment.payment_intent:
        of_it |= Q(payment_intent=payment.payment_intent)
    rows = ProviderRefund.objects.filter(
        of_it, account=operation.account_id, operation__isnull=True
    )
    return rows.order_by("pk")


def is_of_a_file(refund: ProviderRefund) -> bool:
    """Whether a file told of it, which may be where its metadata is from."""
    rows = RefundReport.objects.filter(refund=refund, source=EvidenceSource.REPORT_ROW)
    return rows.exists()


def newest_report(refund: ProviderRefund) -> RefundReport | None:
    """The newest thing that was said of a refund."""
    return RefundReport.objects.filter(refund=refund).order_by("-told_at", "-pk").first()


def events_without_operation(
    operation: Operation, refunds: Collection[ProviderRefund], *, most: int
) -> list[WebhookEvent]:
    """Events about its payment that were handled and matched nothing, as they came.

    Those that told of these `refunds`, and those that nobody answered for so far.
    """
    payment = operation.payment
    of_it = Q(charge=payment.charge)
    if payment.payment_intent:
        of_it |= Q(payment_intent=payment.payment_intent)
    orphans = OrphanEvent.objects.filter(of_it, account=operation.account_id, found_at__isnull=True)
    reports = RefundReport.objects.filter(
        refund__in=[refund.pk for refund in refunds], source=EvidenceSource.WEBHOOK
    )
    names = {
        *orphans.values_list("provider_event_id", flat=True)[:most],
        *reports.values_list("told_by", flat=True)[:most],
    }
    if not names:
        return []
    waits = InboxItem.objects.filter(event=OuterRef("pk"))
    matched = EventHandling.objects.filter(
        provider_event_id=OuterRef("event_id"), event=OuterRef("pk"), operation__isnull=False
    )
    rows = WebhookEvent.objects.filter(
        ~Exists(waits),
        ~Exists(matched),
        event_id__in=names,
        event_account=operation.account.provider_account,
    )
    return list(rows.order_by("provider_created_at", "pk")[:most])


def hold_stuck_items(operation: Operation, *, most: int) -> list[InboxItem]:
    """Lock the events about its payment that wait for a person, oldest first.

    What somebody else is just handling is left to them. Disputes are not among them.
    """
    payment = operation.payment
    about = (
        Q(facts__charge=payment.charge)
        | Q(facts__request_key=operation.idempotency_key)
        | Q(facts__refunds__contains=[{"charge": payment.charge}])
    )
    if payment.payment_intent:
        intent = payment.payment_intent
        about |= Q(facts__payment_intent=intent)
        about |= Q(facts__refunds__contains=[{"payment_intent": intent}])
    rows = InboxItem.objects.select_for_update(no_key=True, skip_locked=True).filter(
        about,
        stuck_at__isnull=False,
        event_account=operation.account.provider_account,
        facts__dispute=None,
    )
    return list(rows.order_by("event")[:most])
