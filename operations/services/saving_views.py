"""Keeping a list under a name, for oneself or for everybody."""

from django.db import connection, transaction

from operations.domain.audit import Actor
from operations.domain.sentences import Refusal, say
from operations.models import AuditEntry, SavedView
from operations.services.engine import Engine

#: How many a person may keep, and how many may be shared: each is counted for each queue page.
MOST_OWN = 6
MOST_SHARED = 6


class ViewRefused(Refusal):
    """This view can't be kept, or not by this person; nothing was changed."""


@transaction.atomic
def save_view(
    *, engine: Engine, name: str, query: str, shared: bool, may_share: bool, actor: Actor
) -> SavedView:
    """Keep the query of a list's address under a name, audited. Raises ViewRefused."""
    name = " ".join(name.replace("\x00", "").split())[:60]
    if not name:
        raise ViewRefused(say("Give the view a name."))
    if shared and not may_share:
        raise ViewRefused(say("Sharing a view needs the role approver."))
    _one_after_another()
    if SavedView.objects.filter(owner=actor.id, name=name).exists():
        raise ViewRefused(say("You have a view with this name already."))
    if shared and SavedView.objects.filter(shared=True, name=name).exists():
        raise ViewRefused(say("There is a shared view with this name already."))
    if shared:
        kept, most = SavedView.objects.filter(shared=True).count(), MOST_SHARED
    else:
        kept, most = SavedView.objects.filter(owner=actor.id, shared=False).count(), MOST_OWN
    if kept >= most:
        raise ViewRefused(say("There are {count} of them already. Remove one first.", count=kept))
    row = SavedView.objects.create(
        name=name,
        owner=actor.id,
        owner_name=actor.name,
        shared=shared,
        query=query[:1_000],
        created_at=engine.clock(),
    )
    _audit(engine, actor, "view_saved", before={}, after=_shown(row))
    return row


@transaction.atomic
def remove_view(*, engine: Engine, view_id: int, may_share: bool, actor: Actor) -> None:
    """Remove a view: one's own, or a shared one by who may share. Raises ViewRefused."""
    _one_after_another()
    row = SavedView.objects.filter(pk=view_id).first()
    if row is None or (row.owner != actor.id and not row.shared):
        raise ViewRefused(say("There is no such view any more."))
    if row.owner != actor.id and not may_share:
        raise ViewRefused(say("Only its owner, or who may share views, removes a shared view."))
    _audit(engine, actor, "view_removed", before=_shown(row), after={})
    row.delete()


def _one_after_another() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('saved-views'))")


def _shown(row: SavedView) -> dict[str, object]:
    return {"view": row.name, "query": row.query, "shared": row.shared, "owner": row.owner_name}


def _audit(
    engine: Engine,
    actor: Actor,
    action: str,
    *,
    before: dict[str, object],
    after: dict[str, object],
) -> None:
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action=action,
        now=engine.clock(),
        before=before,
        after=after,
    )
