"""Many at once: begun by one person or two after they saw what will happen, and stopped.

What is begun is run by a worker (`bulk_running`), which checks each operation again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from operations.domain.access import Act
from operations.domain.audit import Actor
from operations.domain.bulk import (
    BulkAction,
    Outlook,
)
from operations.domain.closure import EvidenceKind
from operations.domain.sentences import Outside, say
from operations.models import AuditEntry, BulkResult, BulkRow, BulkRun, BulkState
from operations.queries.access import people_who
from operations.queries.bulk import accounts_of, moved_since, orphans_moved_since
from operations.services.actors import name_of
from operations.services.bulk_previewing import BulkRefused
from operations.services.engine import Engine

#: What a run may rest on when it closes operations as failed. An absence alone is no evidence.
KINDS_FOR_FAILED = (
    EvidenceKind.DASHBOARD,
    EvidenceKind.PROVIDER_SUPPORT,
    EvidenceKind.BANK_STATEMENT,
)


class PreviewStale(Exception):
    """Operations have changed since the preview, or it is not the one that the form shows.

    Nothing was changed. `moved`: the rows whose operation has.
    """

    def __init__(self, moved: Sequence[BulkRow]) -> None:
        self.moved = moved
        super().__init__("The preview is not how things stand any more.")


@dataclass(frozen=True, kw_only=True)
class Begin:
    """What a person says when they begin a run. `count`: how many it will act on, as they saw.

    `assignee`: the id of the person who is to work on them.
    """

    count: int
    note: str
    kind: str = ""
    reference: str = ""
    assignee: str = ""


@transaction.atomic
def begin(*, engine: Engine, run_id: int, saying: Begin, actor: Actor) -> BulkRun:
    """Let what was previewed run, or wait for a second person where the run wants one.

    The same form sent twice is one run. Raises BulkRefused, PreviewStale.
    """
    run = _locked(run_id)
    if run.made_by != actor.id:
        raise BulkRefused(say("{name} made this preview.", name=Outside(run.made_by_name)))
    if run.state != BulkState.PREVIEWED:
        return run
    action = BulkAction(run.action)
    _check(run, action, saying)
    moved = _moved(run, action)
    if moved or saying.count != run.acts:
        raise PreviewStale(moved)
    now = engine.clock()
    run.note, run.started_at, run.started_from = saying.note.strip(), now, actor.address
    if action is BulkAction.CLOSE_FAILED:
        run.evidence_kind, run.evidence_reference = saying.kind, saying.reference.strip()
    elif action is BulkAction.CLOSE_SUCCEEDED:
        run.evidence_kind = EvidenceKind.PROVIDER_REFUND
    elif action is BulkAction.ASSIGN:
        run.assignee, run.assignee_name = saying.assignee, _name_of_able(run, saying.assignee)
    if run.reasons:
        run.state = BulkState.WAITING
        run.save()
        _audit(engine, run, "bulk_proposed", actor, saying.note)
        return run
    _go(engine, run)
    _audit(engine, run, "bulk_started", actor, saying.note)
    return run


def _moved(run: BulkRun, action: BulkAction) -> list[BulkRow]:
    """What is not as it was seen, where that was looked at for a decision."""
    if action is BulkAction.MARK_OUTSIDE:
        return orphans_moved_since(run)
    return moved_since(run) if action.decides else []


def _check(run: BulkRun, action: BulkAction, saying: Begin) -> None:
    if not run.acts:
        raise BulkRefused(say("Nothing can be done with any of these."))
    if not saying.note.strip():
        raise BulkRefused(say("Write a note: why is this done to all of them?"), "note")
    if action is not BulkAction.CLOSE_FAILED:
        return
    if saying.kind not in KINDS_FOR_FAILED:
        raise BulkRefused(say("Choose what you saw."), "kind")
    if not saying.reference.strip():
        raise BulkRefused(say("Name the evidence: a case number or an address."), "reference")


def people_for(run: BulkRun) -> list[User]:
    """Whom everything that the run acts on can be left to. Three queries."""
    return people_who(Act.DECIDE, accounts_of(run))


def _name_of_able(run: BulkRun, person: str) -> str:
    """The name of who may decide on all that is left to them. Raises BulkRefused."""
    for user in people_for(run):
        if str(user.pk) == person:
            return name_of(user)
    raise BulkRefused(say("Choose who is to work on them."), "assignee")


@transaction.atomic
def approve(*, engine: Engine, run_id: int, note: str, actor: Actor) -> BulkRun:
    """A second person lets a run begin. Raises BulkRefused."""
    run = _waiting(run_id)
    if run.made_by == actor.id:
        raise BulkRefused(say("You proposed this; another person has to decide."))
    _decide(engine, run, note, actor)
    _go(engine, run)
    _audit(engine, run, "bulk_approved", actor, note)
    return run


@transaction.atomic
def reject(*, engine: Engine, run_id: int, note: str, actor: Actor) -> BulkRun:
    """A second person turns a run down, or the first one withdraws it. Raises BulkRefused."""
    run = _waiting(run_id)
    _decide(engine, run, note, actor)
    run.state, run.ended_at = BulkState.REJECTED, engine.clock()
    run.save()
    _audit(engine, run, "bulk_rejected", actor, note)
    return run


@transaction.atomic
def stop(*, engine: Engine, run_id: int, actor: Actor) -> BulkRun:
    """Stop what has not had its turn. What a worker is just doing is finished. Raises BulkRefused.

    Stopping twice is stopping once.
    """
    run = _locked(run_id)
    if run.state != BulkState.RUNNING:
        raise BulkRefused(say("It does not run."))
    if run.stopped_at is not None:
        return run
    now = engine.clock()
    run.stopped_at, run.stopped_by_name = now, actor.name
    run.save(update_fields=["stopped_at", "stopped_by_name"])
    stop_the_rest(run, engine=engine)
    _audit(engine, run, "bulk_stopped", actor, "")
    end_if_done(run, engine=engine)
    return run


def stop_the_rest(run: BulkRun, *, engine: Engine) -> None:
    """Mark what waits, but for the rows that a worker holds."""
    free = run.lines.filter(result="").select_for_update(no_key=True, skip_locked=True)
    pks = list(free.values_list("pk", flat=True))
    BulkRow.objects.filter(pk__in=pks).update(result=BulkResult.STOPPED, decided_at=engine.clock())


def end_if_done(run: BulkRun, *, engine: Engine) -> bool:
    """End a run, which the caller has locked, when no row waits. Tells whether it is over."""
    if run.state != BulkState.RUNNING or run.lines.filter(result="").exists():
        return run.state == BulkState.ENDED
    run.state, run.ended_at, run.claimed_until = BulkState.ENDED, engine.clock(), None
    run.save(update_fields=["state", "ended_at", "claimed_until"])
    return True


def _locked(run_id: int) -> BulkRun:
    return BulkRun.objects.select_for_update(no_key=True).get(pk=run_id)


def _waiting(run_id: int) -> BulkRun:
    run = _locked(run_id)
    if run.state != BulkState.WAITING:
        raise BulkRefused(say("It does not wait for a second person."))
    return run


def _decide(engine: Engine, run: BulkRun, note: str, actor: Actor) -> None:
    if not note.strip():
        raise BulkRefused(say("Write a note: what did you check?"), "note")
    run.decided_by, run.decided_by_name = actor.id, actor.name
    run.decided_at, run.decision_note = engine.clock(), note.strip()


def _go(engine: Engine, run: BulkRun) -> None:
    """Let it run. What the preview said can't be done is marked as left."""
    run.state = BulkState.RUNNING
    run.save()
    run.lines.filter(outlook=Outlook.CANNOT).update(
        result=BulkResult.LEFT, decided_at=engine.clock()
    )


def _audit(engine: Engine, run: BulkRun, action: str, actor: Actor, reason: str) -> None:
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action=action,
        now=engine.clock(),
        after={
            "bulk_run": run.pk,
            "action": run.action,
            "state": str(run.state),
            "rows": run.rows,
            "acts": run.acts,
            "sums": run.sums,
            "evidence": run.evidence_kind,
            "reference": run.evidence_reference,
            **({"assignee": run.assignee_name} if run.assignee else {}),
        },
        reason=reason.strip(),
    )
