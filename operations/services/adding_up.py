"""Adding up: the provider's total of a payment against the refunds that were listed with it."""

from datetime import datetime

from operations.models import Discrepancy, Payment


def compare_total(
    payment: Payment, *, provider_total: int, listed_total: int, complete: bool, now: datetime
) -> Discrepancy | None:
    """Open, keep or close the question where the rest of a total comes from.

    Both figures in the Stripe unit, read together. The caller holds the payment's lock. A
    difference that a person has answered for is not asked about again.
    """
    standing = Discrepancy.objects.filter(payment=payment, closed_at__isnull=True).first()
    if provider_total <= listed_total:
        if standing is not None and complete:
            standing.closed_at, standing.outcome = now, Discrepancy.EXPLAINED
            standing.save(update_fields=["closed_at", "outcome"])
        return None
    if not complete:
        return standing
    if standing is not None:
        standing.provider_total, standing.known_total = provider_total, listed_total
        standing.last_seen_at = now
        standing.save(update_fields=["provider_total", "known_total", "last_seen_at"])
        return standing
    answered = (
        Discrepancy.objects.filter(payment=payment, outcome=Discrepancy.OUTSIDE)
        .order_by("-closed_at")
        .first()
    )
    if answered is not None and answered.difference == provider_total - listed_total:
        return None
    return Discrepancy.objects.create(
        payment=payment,
        provider_total=provider_total,
        known_total=listed_total,
        opened_at=now,
        last_seen_at=now,
    )
