"""Matching again: what is stored about an operation's payment goes through the same matching.

For events that matched nothing when they came, or could not be handled, and for refunds that were
seen and belong to nobody. What matching believes and refuses is the same as ever.
"""

from dataclasses import dataclass
from uuid import UUID

from operations.domain.audit import Actor
from operations.domain.events import facts_to_json
from operations.domain.matching import our_mark
from operations.domain.sentences import Sentence, say
from operations.models import (
    AuditEntry,
    EventHandling,
    EvidenceSource,
    Handling,
    InboxItem,
    Operation,
    Payment,
    ProviderRefund,
    WebhookEvent,
    collecting,
)
from operations.providers.stripe_events import event_facts
from operations.queries.told import (
    events_without_operation,
    hold_stuck_items,
    is_of_a_file,
    newest_report,
    refunds_without_operation,
)
from operations.services.believing import take_refund
from operations.services.draining import conclude
from operations.services.engine import Engine
from operations.services.learning import Learned
from operations.services.matching import match_all
from operations.services.settling import lock

#: No more events of one payment are looked through.
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedAgain:
    """How many stored events and refunds were looked through, and whether the operation has
    something new by them."""

    events: int
    refunds: int
    is_new: bool

    def in_a_sentence(self) -> Sentence:
        """What was looked through, for people."""
        return say(
            "Stored events looked through: {events}. Refunds without an operation: {refunds}.",
            events=self.events,
            refunds=self.refunds,
        )


def match_again(
    *, engine: Engine, operation_id: UUID, actor: Actor, reason: str, bulk_run: int
) -> MatchedAgain:
    """Let all that is stored about its payment change what it proves.

    In a transaction that collects its writes. Raises OperationNotFound.
    """
    seen = Operation.objects.select_related("payment", "account").get(pk=operation_id)
    stuck = hold_stuck_items(seen, most=_MOST)
    # The payment before the operation, as everywhere.
    Payment.objects.select_for_update(no_key=True).get(pk=seen.payment_id)
    refunds = list(refunds_without_operation(seen))
    again = [_item(event) for event in events_without_operation(seen, refunds, most=_MOST)]
    is_new = _handle_events(engine, operation_id, stuck, again)
    collecting.flush()
    is_new = _take_marked(engine, operation_id, refunds, actor, bulk_run) or is_new
    operation = lock(operation_id)
    found = MatchedAgain(events=len(stuck) + len(again), refunds=len(refunds), is_new=is_new)
    AuditEntry.append(
        operation_id=operation_id,
        actor=actor,
        action="matched_again",
        now=engine.clock(),
        before={"revision": seen.revision},
        after={
            "revision": operation.revision,
            "events": found.events,
            "refunds": found.refunds,
            "matched": is_new,
            "bulk_run": bulk_run,
        },
        reason=reason,
    )
    return found


def _item(event: WebhookEvent) -> InboxItem:
    """What the event says, read anew from what is stored, as if it waited."""
    facts = event_facts(event.payload)
    return InboxItem(
        event_id=event.pk,
        filed_at=event.filed_at,
        provider_event_id=event.event_id,
        event_account=event.event_account,
        livemode=event.livemode,
        relevant=facts.relevant,
        facts=facts_to_json(facts),
        received_at=event.received_at,
        attempts=1,
    )


def _handle_events(
    engine: Engine, operation_id: UUID, stuck: list[InboxItem], again: list[InboxItem]
) -> bool:
    """Whether one of them says something new of the operation."""
    if not stuck and not again:
        return False
    waited = {item.event_id for item in stuck}
    now, is_new = engine.clock(), False
    for item, handled in match_all(engine=engine, items=[*stuck, *again]):
        if item.event_id in waited:
            item.stuck_at = None
            conclude(item, handled, now)
        elif handled.operation is not None:
            collecting.insert(
                EventHandling.of(item, handled.handling, now=now, operation=handled.operation)
            )
        mine = handled.operation is not None and handled.operation.pk == operation_id
        is_new = is_new or (mine and handled.handling is not Handling.NO_CHANGE)
    return is_new


def _take_marked(
    engine: Engine,
    operation_id: UUID,
    refunds: list[ProviderRefund],
    actor: Actor,
    bulk_run: int,
) -> bool:
    """Believe what is left of the refunds that carry the operation's mark, as they were told."""
    is_new, now = False, engine.clock()
    left = ProviderRefund.objects.filter(
        pk__in=[refund.pk for refund in refunds], operation__isnull=True
    )
    for refund in left.order_by("pk"):
        mark, report = our_mark(refund.metadata), newest_report(refund)
        if mark is None or report is None or mark.operation_id != operation_id:
            continue
        if mark.environment != engine.environment:
            continue
        source = EvidenceSource(report.source)
        if is_of_a_file(refund):
            source = EvidenceSource.REPORT_ROW
        operation = lock(operation_id)
        before = operation.revision
        learned = Learned(
            source=source,
            summary=f"refund {refund.provider_object_id} is {refund.status}, matched again.",
            actor=actor,
            observed_at=report.told_at,
            bulk_run=bulk_run,
            facts={"refund": refund.provider_object_id},
        )
        take_refund(operation, refund.as_facts(), learned=learned, now=now)
        collecting.flush()
        is_new = is_new or operation.revision != before
    return is_new
