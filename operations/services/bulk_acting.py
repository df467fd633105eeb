"""What a run does to its operations: each by the rules that hold for one, under its lock.

What only writes is done for hundreds in one transaction that collects its writes; what asks the
provider is done one by one (`bulk_asking`).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from psycopg.types.numeric import Int8

from operations.domain.access import ALL, Act, Rights
from operations.domain.audit import Actor, ActorKind
from operations.domain.bulk import BulkAction, Foreseen, Outlook, foresee
from operations.domain.closure import EvidenceKind, SecondPersonReason
from operations.domain.masking import masked_text
from operations.domain.sentences import Outside, Sentence, as_kept, say
from operations.models import (
    AuditEntry,
    BulkResult,
    BulkRow,
    BulkRun,
    Claim,
    Operation,
    collecting,
)
from operations.models.audit import chain_of
from operations.models.statements import Statement, build, columns
from operations.models.statements import run as run_sql
from operations.queries.access import rights_of_person
from operations.queries.bulk import Stood, stand
from operations.queries.locked import lock_and_read_all
from operations.services.bulk_previewing import conclusive_after
from operations.services.claiming import Assignee, claim_many
from operations.services.closing import propose, settle, stated
from operations.services.engine import Engine
from operations.services.learning import Learned
from operations.services.weighing import (
    BulkPart,
    Decision,
)

log = structlog.get_logger(__name__)

_ROW = f"SELECT {columns(BulkRow, 'line')} FROM operations_bulkrow AS line"  # noqa: S608 - our columns
# What another worker is just doing is left to it.
_FREE = " ORDER BY place {} FOR NO KEY UPDATE SKIP LOCKED"
_NEXT = f"{_ROW} WHERE run_id = $1 AND result = '' {_FREE.format('LIMIT $2')}"
THESE = f"{_ROW} WHERE id = ANY($1) AND result = '' {_FREE.format('')}"
_LET_GO = "DELETE FROM operations_claim WHERE operation_id = ANY($1) RETURNING 1"


def act_on_chunk(*, engine: Engine, run: BulkRun, rights: Rights, most: int) -> int:
    """Do it to the next rows that nobody holds, in one transaction; how many have a result now."""
    held: list[BulkRow] = []
    try:
        return _act_together(engine, run, rights, held, (_NEXT, [Int8(run.pk), Int8(most)]))
    except Exception as error:
        return _act_in_halves(engine, run, rights, [row.pk for row in held], error)


def _act_in_halves(
    engine: Engine, run: BulkRun, rights: Rights, rows: Sequence[int], error: Exception
) -> int:
    """What failed together is done in halves, down to the row to blame."""
    if not rows:
        raise error
    if len(rows) == 1:
        return keep_error(engine, rows[0], error)
    middle, done = len(rows) // 2, 0
    for part in (rows[:middle], rows[middle:]):
        try:
            done += _act_together(engine, run, rights, [], (THESE, [list(part)]))
        except Exception as caught:
            done += _act_in_halves(engine, run, rights, part, caught)
    return done


def _act_together(
    engine: Engine, run: BulkRun, rights: Rights, held: list[BulkRow], which: Statement
) -> int:
    """All of it in one transaction. `held` is filled with the rows that are done."""
    with collecting.collecting(in_groups=True) as collected:
        held += [build(BulkRow, row) for row in run_sql(*which)]
        if not held:
            return 0
        ids = [row.operation_pk for row in held]
        lock_and_read_all(ids, collected=collected, spare_ids=0)
        chunk = _Chunk(engine, run, collected)
        rows = chunk.allowed(held, rights)
        if run.action in (BulkAction.CLAIM, BulkAction.ASSIGN):
            chunk.claim(rows)
        else:
            chunk.close(rows)
    return len(held)


class _Chunk:
    """Operations of one run, locked, and the rows that tell what becomes of them."""

    def __init__(self, engine: Engine, run: BulkRun, collected: collecting.Collected) -> None:
        self._engine, self._run, self._collected = engine, run, collected
        self._now = engine.clock()
        self._actor = actor_of(run)

    def allowed(self, rows: Sequence[BulkRow], rights: Rights) -> Sequence[BulkRow]:
        """Those at whose account the person may still act on many; the others are refused."""
        if Act.BULK in rights.everywhere:
            return rows
        locked, allowed = self._collected.locked, []
        for row in rows:
            account = locked[row.operation_pk].account
            if Act.BULK in rights.at(account.pk):
                allowed.append(row)
            else:
                said = right_is_gone(self._run.made_by_name, account.name)
                _decide(row, BulkResult.REFUSED, now=self._now, said=said)
        return allowed

    def claim(self, rows: Sequence[BulkRow]) -> None:
        """Claim what nobody else works on, for the person who acts or whom they named."""
        to = assignee_of(self._run)
        rows = self._allowed_to_work(rows)
        claimed = claim_many(
            to=to,
            operation_ids=[row.operation_pk for row in rows],
            actor=self._actor,
            now=self._now,
            bulk_run=self._run.pk,
        )
        held = [row.operation_pk for row in rows if row.operation_pk not in claimed]
        holders = dict(
            Claim.objects.filter(pk__in=held).values_list("operation_id", "holder_name")
            if held
            else ()
        )
        for row in rows:
            holder = holders.get(row.operation_pk)
            if holder is None:
                _decide(row, BulkResult.ASSIGNED if to else BulkResult.CLAIMED, now=self._now)
            else:
                said = say("{who} works on it.", who=Outside(holder))
                _decide(row, BulkResult.REFUSED, now=self._now, said=said)

    def _allowed_to_work(self, rows: Sequence[BulkRow]) -> Sequence[BulkRow]:
        """Those that the person whom they are left to may decide on; the others are refused."""
        run = self._run
        rights = rights_of_person(run.assignee) if run.assignee else ALL
        if Act.DECIDE in rights.everywhere:
            return rows
        allowed = []
        for row in rows:
            account = self._collected.locked[row.operation_pk].account
            if Act.DECIDE in rights.at(account.pk):
                allowed.append(row)
            else:
                said = right_is_gone(run.assignee_name, account.name)
                _decide(row, BulkResult.REFUSED, now=self._now, said=said)
        return allowed

    def close(self, rows: Sequence[BulkRow]) -> None:
        """Close what is as it was seen and may be closed by one; propose what wants two."""
        asked = [row.operation_pk for row in rows]
        stood = {row.id: row for row in stand(asked, person=self._actor.id, now=self._now)}
        conclusive = conclusive_after(self._engine, list(stood.values()))
        moved: list[BulkRow] = []
        if not rows:
            return
        # The decision is the same for all but the revision, which is compared here.
        learned = stated(decision_of(self._run, rows[0]), self._actor, self._now)
        for row in rows:
            known = stood[row.operation_pk]
            if known.revision != row.revision:
                moved.append(row)
                continue
            seen = foresee(
                BulkAction(self._run.action),
                known.standing,
                limits=self._engine.second_person_above,
                conclusive_after_s=conclusive[known.account_id],
                now=self._now,
            )
            self._close(row, known, as_begun(row, seen), learned)
        self._skip(moved)
        # A claim ends with what it was for.
        run_sql(_LET_GO, [[row.operation_pk for row in rows if row.result in _OVER]])

    def _close(self, row: BulkRow, known: Stood, seen: Foreseen, learned: Learned) -> None:
        operation: Operation = self._collected.locked[row.operation_pk]
        decision = decision_of(self._run, row)
        match seen.outlook:
            case Outlook.CANNOT:
                _decide(
                    row,
                    BulkResult.REFUSED,
                    now=self._now,
                    detail=" ".join(str(reason) for reason in seen.why),
                    left_as=operation.status,
                )
            case Outlook.SECOND:
                propose(operation, decision, reasons_of(seen), self._actor, self._now)
                _decide(row, BulkResult.PROPOSED, now=self._now, left_as=operation.status)
            case Outlook.WILL:
                settle(
                    operation,
                    decision,
                    None,
                    self._actor,
                    self._now,
                    has_live_refund=known.standing.has_live_refund,
                    learned=learned,
                )
                _decide(row, BulkResult.CLOSED, now=self._now, left_as=operation.status)

    def _skip(self, rows: Sequence[BulkRow]) -> None:
        """Leave alone what has changed, and say who changed it."""
        who = last_changed_by([row.operation_pk for row in rows])
        for row in rows:
            _decide(
                row,
                BulkResult.SKIPPED,
                now=self._now,
                detail=who.get(row.operation_pk, ""),
                left_as=self._collected.locked[row.operation_pk].status,
            )


_OVER = (BulkResult.CLOSED, BulkResult.PROPOSED)


def as_begun(row: BulkRow, seen: Foreseen) -> Foreseen:
    """What becomes of it: what was begun as a proposal stays one, whatever has become fresh since.

    Whether the run as a whole wants a second person was judged without it.
    """
    if row.outlook == Outlook.SECOND and seen.outlook is Outlook.WILL:
        return Foreseen(Outlook.SECOND, tuple(SecondPersonReason(reason) for reason in row.why))
    return seen


def decision_of(run: BulkRun, row: BulkRow) -> Decision:
    """The decision that the run makes about one of its operations."""
    outcome = BulkAction(run.action).outcome
    if outcome is None:
        raise ValueError(f"{run.action} decides nothing.")
    return Decision(
        outcome=outcome,
        evidence_kind=EvidenceKind(run.evidence_kind),
        evidence_reference=row.refund
        if run.action == BulkAction.CLOSE_SUCCEEDED
        else run.evidence_reference,
        note=run.note,
        revision=row.revision,
        part=BulkPart(run=run.pk, approved_by=run.decided_by_name, approval_note=run.decision_note),
    )


def actor_of(run: BulkRun) -> Actor:
    """The person who began it: what a run does is theirs, and not the worker's."""
    return Actor(
        kind=ActorKind.PERSON,
        id=run.made_by,
        name=run.made_by_name,
        address=run.started_from,
    )


def assignee_of(run: BulkRun) -> Assignee | None:
    """Who is to work on them, where that is what the run does."""
    if run.action != BulkAction.ASSIGN:
        return None
    return Assignee(id=run.assignee, name=run.assignee_name, why=run.note)


def right_is_gone(name: str, account: str) -> Sentence:
    """Why a row is left alone although the run goes on."""
    return say(
        "{name} may not do this any more at the account {account}.",
        name=Outside(name),
        account=Outside(account),
    )


def last_changed_by(ids: Sequence[UUID]) -> dict[UUID, str]:
    """Who wrote the newest audit entry of each operation."""
    newest = (
        AuditEntry.objects.filter(chain__in=[chain_of(pk) for pk in ids])
        .order_by("chain", "-number")
        .distinct("chain")
    )
    return {row.operation_id: row.actor_name for row in newest if row.operation_id} if ids else {}


def reasons_of(seen: Foreseen) -> tuple[SecondPersonReason, ...]:
    """Why it wants a second person."""
    return tuple(SecondPersonReason(reason) for reason in seen.why)


def _decide(
    row: BulkRow,
    result: BulkResult,
    *,
    now: datetime,
    detail: str = "",
    left_as: str = "",
    said: Sentence | None = None,
) -> None:
    row.result, row.decided_at = result, now
    row.detail, row.left_as = detail[:500], left_as
    if said is not None:
        row.detail, row.said = str(said)[:500], as_kept(said)
    collecting.update(row, _DECIDED)


_DECIDED = ["result", "decided_at", "detail", "left_as", "said"]


def write_result(
    engine: Engine, row: BulkRow, result: BulkResult, *, said: Sentence | None = None, **more: Any
) -> int:
    """Write a result unless there is one already; 1 when it was written."""
    if said is not None:
        more |= {"detail": str(said)[:500], "said": as_kept(said)}
    return BulkRow.objects.filter(pk=row.pk, result="").update(
        result=result, decided_at=engine.clock(), **more
    )


def keep_error(engine: Engine, row_id: int, error: Exception) -> int:
    """Write down what broke, masked; 1 when it was written."""
    log.error("bulk_row_not_done", row=row_id, error=masked_text(repr(error)))
    return BulkRow.objects.filter(pk=row_id, result="").update(
        result=BulkResult.FAILED,
        detail=masked_text(f"{type(error).__name__}: {error}")[:500],
        decided_at=engine.clock(),
    )
