"""Replaying: a person lets events that are stuck be handled once more."""

from django.db import transaction

from operations.domain.audit import Actor
from operations.domain.sentences import Refusal, say
from operations.models import AuditEntry, InboxItem
from operations.services.engine import Engine

#: No more are replayed with one click; the rest stays on the page.
MOST_AT_ONCE = 10_000


class ReplayRefused(Refusal):
    """Nothing was replayed; the text says why."""


@transaction.atomic
def replay(*, engine: Engine, actor: Actor, reason: str, event_pk: int | None = None) -> int:
    """Let one stuck event, or all of them, have their tries again. How many there were.

    Raises ReplayRefused.
    """
    if not reason.strip():
        raise ReplayRefused(say("Say why it should go well now."))
    stuck = InboxItem.objects.select_for_update(no_key=True).filter(stuck_at__isnull=False)
    if event_pk is not None:
        stuck = stuck.filter(pk=event_pk)
    items = list(stuck.order_by("event").values_list("pk", "provider_event_id")[:MOST_AT_ONCE])
    if not items:
        raise ReplayRefused(say("It is not stuck any more."))
    now = engine.clock()
    InboxItem.objects.filter(pk__in=[pk for pk, _ in items]).update(
        stuck_at=None, failures=0, claimed_until=None, handle_after=now
    )
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action="events_replayed",
        now=now,
        before={"stuck": len(items)},
        after={"events": [event_id for _, event_id in items[:50]]},
        reason=reason.strip()[:500],
    )
    return len(items)
