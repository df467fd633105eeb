"""Events that match nothing: kept for people, who say what they belong to."""

from datetime import timedelta

from django.db import transaction

from operations.domain.audit import Actor
from operations.domain.orphans import Link
from operations.domain.sentences import Outside, Refusal, say
from operations.models import (
    AuditEntry,
    EvidenceSource,
    Operation,
    OrphanEvent,
    collecting,
)
from operations.services.claiming import ClaimHeld, refuse_others
from operations.services.engine import Engine
from operations.services.ground import Ground, Told
from operations.services.learning import Learned
from operations.services.settling import lock, write_evidence
from operations.services.weighing import StaleView

#: When the sweep looks for itself after an event was linked.
_LOOK_UP_AFTER = timedelta(seconds=1)


class OrphanEventRefused(Refusal):
    """This can't be done with the event; nothing was changed. `field` names what to mend."""


def keep_orphan(ground: Ground, event: Told) -> None:
    """Keep, once, that this event says that money went back and names nothing that we know."""
    account = ground.account_of(event)
    collecting.insert(
        OrphanEvent(
            event_id=event.item.event_id,
            filed_at=event.item.filed_at,
            provider_event_id=event.item.provider_event_id,
            event_type=event.facts.type[:255],
            event_account=event.item.event_account,
            account_id=account.pk if account else None,
            charge=event.facts.charge[:255],
            payment_intent=event.facts.payment_intent[:255],
            happened_at=event.learned("", {}).observed_at,
            seen_at=ground.now,
        ),
        once=True,
    )


@transaction.atomic
def link_event(*, engine: Engine, orphan_id: int, link: Link, actor: Actor) -> Operation:
    """Record as evidence that an event is an operation's, and look the operation up soon.

    The event decides nothing: the look-up reads what the provider has. Raises OrphanEventRefused,
    StaleView.
    """
    note = link.note.strip()
    if not note:
        raise OrphanEventRefused(say("Write a note: what shows that they belong together?"), "note")
    seen = Operation.objects.filter(pk=link.operation_id).first()
    orphan = _unanswered(orphan_id)
    if seen is None or seen.account_id != orphan.account_id:
        raise OrphanEventRefused(say("There is no such operation in this account."), "operation")
    operation = lock(link.operation_id)
    if operation.revision != link.revision:
        raise StaleView(operation)
    now = engine.clock()
    try:
        refuse_others(operation, actor=actor, now=now)
    except ClaimHeld as held:
        raise OrphanEventRefused(held.sentence) from held
    learned = Learned(
        source=EvidenceSource.STATEMENT,
        summary=f"{actor.name}: {note}",
        actor=actor,
        observed_at=now,
        facts={"kind": "event_linked", "reference": orphan.provider_event_id, "note": note},
    )
    evidence = write_evidence(operation, learned, now=now)
    operation.plan(now=now, next_check_at=now + _LOOK_UP_AFTER)
    AuditEntry.append(
        operation_id=operation.pk,
        actor=actor,
        action="event_linked",
        now=now,
        before={},
        after={"event": orphan.provider_event_id, "type": orphan.event_type},
        reason=note,
        evidence_id=evidence.pk,
    )
    _answer(orphan, engine=engine, reason=note, actor=actor, operation=operation)
    return operation


@transaction.atomic
def mark_event_outside(*, engine: Engine, orphan_id: int, reason: str, actor: Actor) -> OrphanEvent:
    """Keep that what an event speaks of was done by somebody else. Raises OrphanEventRefused."""
    if not reason.strip():
        raise OrphanEventRefused(say("Say how you know that it was made outside."), "reason")
    orphan = _unanswered(orphan_id)
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action="event_made_outside",
        now=engine.clock(),
        before={"event": orphan.provider_event_id},
        after={
            "event": orphan.provider_event_id,
            "type": orphan.event_type,
            "charge": orphan.charge,
        },
        reason=reason.strip(),
    )
    _answer(orphan, engine=engine, reason=reason.strip(), actor=actor, operation=None)
    return orphan


def _unanswered(orphan_id: int) -> OrphanEvent:
    orphan = OrphanEvent.objects.select_for_update(no_key=True).get(pk=orphan_id)
    if orphan.found_at is not None:
        raise OrphanEventRefused(
            say("{who} answered for this event already.", who=Outside(orphan.found_by_name))
        )
    return orphan


def _answer(
    orphan: OrphanEvent,
    *,
    engine: Engine,
    reason: str,
    actor: Actor,
    operation: Operation | None,
) -> None:
    orphan.operation = operation
    orphan.reason = reason
    orphan.found_by, orphan.found_by_name = actor.id, actor.name
    orphan.found_at = engine.clock()
    orphan.save(update_fields=["operation", "reason", "found_by", "found_by_name", "found_at"])
