"""One piece of evidence in words, and which refunds it names."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from operations.domain.answers import RefundFacts
from operations.domain.identity import METADATA_ENVIRONMENT, METADATA_OPERATION
from operations.domain.sentences import Outside, Sentence, say
from operations.models import Attempt, Evidence, EvidenceSource, Operation


class EvidenceLine(NamedTuple):
    """A piece of evidence as far as a line of a list shows it."""

    source: str
    provider_object_id: str
    provider_status: str
    summary: str
    facts: Mapping[str, Any]
    observed_at: datetime


def in_words(row: Evidence | EvidenceLine, *, settled: bool) -> Sentence:
    """What it told. The provider's word for the end is left out while nobody knows the end."""
    refund = Outside(row.provider_object_id)
    status = Outside(row.provider_status)
    if row.source == EvidenceSource.LOOKUP:
        return _lookup(row, refund, status, settled=settled)
    if row.source == EvidenceSource.STATEMENT:
        return say("{note}", note=Outside(str(row.facts.get("note", row.summary))))
    if not row.provider_object_id:
        return say("{summary}", summary=Outside(row.summary))
    if settled:
        return say("Refund {refund} is {status}.", refund=refund, status=status)
    return say("It names refund {refund}.", refund=refund)


def _lookup(
    row: Evidence | EvidenceLine, refund: Outside, status: Outside, *, settled: bool
) -> Sentence:
    match row.facts.get("result"):
        case "found" if settled:
            return say(
                "Refund {refund} carries our reference: {status}.", refund=refund, status=status
            )
        case "found":
            return say("Refund {refund} carries our reference.", refund=refund)
        case "absent":
            others = int(row.facts.get("refunds_seen_count") or 0)
            if not others:
                return say("No refund with our reference on the payment.")
            return say(
                "No refund with our reference on the payment. Other refunds seen: {count}.",
                count=others,
            )
        case "incomplete":
            return say("The refunds could not be read to the end; ours was not among those seen.")
        case _:
            return say(
                "The provider could not be read: {error}",
                error=Outside(str(row.facts.get("error", ""))),
            )


def anchor_of(row: Evidence, *, attempts: Iterable[Attempt], lookups: Iterable[Evidence]) -> str:
    """Where the timeline of its operation shows a piece of evidence."""
    if row.event_id:
        return f"event-{row.event_id}"
    for attempt in attempts:
        if attempt.pk == row.attempt_id:
            return f"attempt-{attempt.number}"
    for number, lookup in enumerate(lookups, 1):
        if lookup.pk == row.pk:
            return f"lookup-{number}"
    return f"evidence-{row.pk}"


def refunds_named(operation: Operation, evidence: Iterable[Evidence]) -> list[RefundFacts]:
    """Refunds that evidence names, as far as it tells: a difference may keep them off our list.

    A look-up finds a refund on the operation's own payment and by its reference.
    """
    return [
        RefundFacts(
            id=row.provider_object_id,
            status=row.provider_status,
            amount=row.amount or 0,
            currency=row.currency,
            charge=operation.payment.charge if _listed(row) else "",
            payment_intent=operation.payment.payment_intent if _listed(row) else "",
            metadata={
                METADATA_OPERATION: str(operation.pk),
                METADATA_ENVIRONMENT: operation.environment,
            }
            if _listed(row)
            else {},
        )
        for row in evidence
        if row.provider_object_id
    ]


def _listed(row: Evidence) -> bool:
    return row.source == EvidenceSource.LOOKUP
