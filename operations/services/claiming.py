"""Claiming: a person works on an operation for a while, and others see it and leave it to them.

A claim blocks no reading, and changes neither the operation nor its revision. It asks others to
take it over, with a reason, before they decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from operations.domain.audit import Actor
from operations.domain.claims import CLAIM_LEASE, PRESENT_FOR
from operations.domain.sentences import Outside, say
from operations.models import AuditEntry, Claim, Operation
from operations.models.statements import run
from operations.services.engine import Engine
from operations.services.settling import lock
from operations.services.weighing import ClosingRefused, Overtaken


class ClaimHeld(Overtaken):
    """Somebody else works on this operation; nothing was changed."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        super().__init__(
            say(
                "{who} is working on this operation. Take it over first, with a reason.",
                who=Outside(claim.holder_name),
            )
        )


class TakeoverRefused(ClosingRefused):
    """The claim stays where it is; nothing was changed. `field` names what to mend."""


@transaction.atomic
def claim(*, engine: Engine, operation_id: UUID, actor: Actor) -> Claim:
    """Let this person work on it for 15 minutes from now. Raises ClaimHeld, OperationNotFound."""
    lock(operation_id)
    now = engine.clock()
    row = _live(operation_id, now)
    if row is None:
        return _give(operation_id, actor, now, action="claimed")
    if row.holder != actor.id:
        raise ClaimHeld(row)
    _renew(operation_id, actor.id, now)
    row.refresh_from_db()
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignee:
    """The person whom somebody else leaves operations to, and why."""

    id: str
    name: str
    why: str


def claim_many(
    *,
    operation_ids: Sequence[UUID],
    actor: Actor,
    now: datetime,
    bulk_run: int,
    to: Assignee | None = None,
) -> set[UUID]:
    """Claim those of these locked operations that nobody else works on; which they are.

    `to`: who is to work on them instead of the actor, whose own claims are handed over. In a
    transaction that collects its writes.
    """
    holder = to or Assignee(id=actor.id, name=actor.name, why="")
    until, why = now + CLAIM_LEASE, holder.why[:500]
    given = [list(operation_ids), holder.id, holder.name, now, until, why, actor.id]
    rows = run(_CLAIM_MANY, given)
    claimed = {pk for (pk,) in rows}
    for operation_id in operation_ids:
        if operation_id in claimed:
            AuditEntry.append(
                operation_id=operation_id,
                actor=actor,
                action="assigned" if to else "claimed",
                now=now,
                before={"claimed_by": ""},
                after={
                    "claimed_by": holder.name,
                    "claimed_by_id": holder.id,
                    "bulk_run": bulk_run,
                },
                reason=why,
            )
    return claimed


_CLAIM_MANY = """
INSERT INTO operations_claim AS held
    (operation_id, holder, holder_name, claimed_at, renewed_at, expires_at, taken_reason)
SELECT pk, $2, $3, $4, $4, $5, $6 FROM unnest($1::uuid[]) AS pk
ON CONFLICT (operation_id) DO UPDATE
    SET holder = EXCLUDED.holder, holder_name = EXCLUDED.holder_name,
        taken_reason = EXCLUDED.taken_reason,
        claimed_at = EXCLUDED.claimed_at, renewed_at = EXCLUDED.renewed_at,
        expires_at = EXCLUDED.expires_at
    WHERE held.holder IN (EXCLUDED.holder, $7) OR held.expires_at <= EXCLUDED.claimed_at
RETURNING operation_id
"""


@transaction.atomic
def take_over(
    *, engine: Engine, operation_id: UUID, held_by: str, reason: str, actor: Actor
) -> Claim:
    """Take it from who works on it. Raises ClaimHeld, TakeoverRefused, OperationNotFound.

    `held_by`: the id of the person whom the page named; somebody who took it since is asked first.
    What nobody holds any more is claimed as usual, and no reason is wanted.
    """
    lock(operation_id)
    now = engine.clock()
    row = _live(operation_id, now)
    if row is None or row.holder == actor.id:
        return claim(engine=engine, operation_id=operation_id, actor=actor)
    if row.holder != held_by:
        raise ClaimHeld(row)
    if not reason.strip():
        raise TakeoverRefused(say("Say why you take it over."), "reason")
    return _give(
        operation_id,
        actor,
        now,
        action="claim_taken_over",
        before={"claimed_by": row.holder_name, "claimed_by_id": row.holder},
        reason=reason.strip()[:500],
    )


@transaction.atomic
def release(*, engine: Engine, operation_id: UUID, actor: Actor) -> bool:
    """Give it back. False when this person does not hold it (any more): nothing was changed."""
    lock(operation_id)
    now = engine.clock()
    row = _live(operation_id, now)
    if row is None or row.holder != actor.id:
        return False
    let_go(operation_id)
    AuditEntry.append(
        operation_id=operation_id,
        actor=actor,
        action="claim_released",
        now=now,
        before={"claimed_by": actor.name, "claimed_by_id": actor.id},
        after={"claimed_by": ""},
    )
    return True


def stay(*, engine: Engine, operation_id: UUID, actor: Actor) -> None:
    """This person has the operation's page open: colleagues see it, and their claim goes on.

    Not audited: it says nothing but that a page is open. A claim that ran out stays so.
    """
    now = engine.clock()
    with connection.cursor() as cursor:
        cursor.execute(
            _SEEN,
            {
                "operation": operation_id,
                "person": actor.id,
                "name": actor.name,
                "now": now,
                "gone": now - 5 * PRESENT_FOR,
            },
        )
    _renew(operation_id, actor.id, now)


def let_go(operation_id: UUID) -> None:
    """End a claim with what it was for: the decision says in the audit trail who made it."""
    Claim.objects.filter(pk=operation_id).delete()


def refuse_others(operation: Operation, *, actor: Actor, now: datetime) -> None:
    """Refuse a decision on what somebody else works on. Raises ClaimHeld.

    Whoever decides holds the operation's lock; without it the answer is only a hint.
    """
    row = _live(operation.pk, now)
    if row is not None and row.holder != actor.id:
        raise ClaimHeld(row)


# One statement each, without the operation's lock: whoever takes a claim over waits for the row.
_SEEN = """
WITH gone AS (
    DELETE FROM operations_presence WHERE person = %(person)s AND seen_at < %(gone)s
        AND operation_id <> %(operation)s
)
INSERT INTO operations_presence (operation_id, person, person_name, seen_at)
SELECT id, %(person)s, %(name)s, %(now)s FROM operations_operation WHERE id = %(operation)s
ON CONFLICT (operation_id, person) DO UPDATE
    SET seen_at = EXCLUDED.seen_at, person_name = EXCLUDED.person_name
"""


def _live(operation_id: UUID, now: datetime) -> Claim | None:
    """The claim, unless it has run out."""
    return Claim.objects.filter(pk=operation_id, expires_at__gt=now).first()


def _renew(operation_id: UUID, person: str, now: datetime) -> None:
    Claim.objects.filter(pk=operation_id, holder=person, expires_at__gt=now).update(
        renewed_at=now, expires_at=now + CLAIM_LEASE
    )


def _give(
    operation_id: UUID,
    actor: Actor,
    now: datetime,
    *,
    action: str,
    before: dict[str, Any] | None = None,
    reason: str = "",
) -> Claim:
    row, _made = Claim.objects.update_or_create(
        operation_id=operation_id,
        defaults={
            "holder": actor.id,
            "holder_name": actor.name,
            "claimed_at": now,
            "renewed_at": now,
            "expires_at": now + CLAIM_LEASE,
            "taken_reason": reason,
        },
    )
    AuditEntry.append(
        operation_id=operation_id,
        actor=actor,
        action=action,
        now=now,
        before=before or {"claimed_by": ""},
        after={"claimed_by": actor.name, "claimed_by_id": actor.id},
        reason=reason,
    )
    return row
