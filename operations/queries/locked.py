"""Operations under their locks, with all that a decision about them rests on."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from psycopg.types.numeric import Int8

from operations.domain.audit import CHAIN_START
from operations.models import Account, Attempt, Operation, Payment, collecting
from operations.models.audit import chain_of
from operations.models.evidence import NEXT_EVIDENCE_ID
from operations.models.statements import build, columns, run_together, width
from operations.models.steps import SOMEBODY_SUBSCRIBED

_LOCK = "SELECT 1 FROM operations_operation WHERE id = $1 FOR NO KEY UPDATE"
# In one order for everybody, so that nobody waits for one that waits for him.
_LOCK_ALL = """
SELECT 1 FROM operations_operation WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE
"""

# With an id for evidence, if one is drawn here: a subquery draws one a statement.
_WITH_ALL = f"""
SELECT {columns(Operation, "o")}, {columns(Payment, "p")}, {columns(Account, "a")},
       tip.number, tip.entry_hash, %s,
       EXISTS (SELECT FROM operations_proposal AS proposal
               WHERE proposal.operation_id = o.id AND proposal.state = 'waiting')
"""  # noqa: S608 - columns of our own tables
_FROM = """
FROM operations_operation AS o
JOIN operations_payment AS p ON p.id = o.payment_id
JOIN operations_account AS a ON a.id = o.account_id
LEFT JOIN LATERAL (
    SELECT number, entry_hash FROM operations_auditentry
    WHERE chain = o.id::text ORDER BY number DESC LIMIT 1
) AS tip ON true
"""

# Sent after the lock is held: a statement that waits for a lock sees other tables as they were
# before it waited.
_READ = f"""
{_WITH_ALL % f"(SELECT {NEXT_EVIDENCE_ID})"}, {columns(Attempt, "t")} {_FROM}
LEFT JOIN operations_attempt AS t ON t.operation_id = o.id
WHERE o.id = $1
ORDER BY t.number
"""
_SUBSCRIBED = f"SELECT {SOMEBODY_SUBSCRIBED}"
# The sequence is looked up once.
_DRAW = """
SELECT nextval(named.sequence) FROM (
    SELECT pg_get_serial_sequence('operations_evidence', 'id')::regclass AS sequence OFFSET 0
) AS named, generate_series(1, $1)
"""
_READ_ALL = f"{_WITH_ALL % 'NULL'} {_FROM} WHERE o.id = ANY($1)"

#: Where an operation keeps the attempts that were read with it.
_KEPT = "_attempts_kept"
_PAYMENT = width(Operation)
_ACCOUNT = _PAYMENT + width(Payment)
_TIP = _ACCOUNT + width(Account)
_ATTEMPT = _TIP + 4


def lock_and_read(operation_id: UUID) -> Operation | None:
    """The operation with its account, payment and attempts, locked until the transaction ends.

    Its attempts are in `attempts.all()`, by number, without another query. None when there is no
    such operation. A transaction that collects its writes also learns the end of its audit chain
    and an id for new evidence, and gets the same object when it asks again.
    """
    collected = collecting.current()
    if collected is not None and operation_id in collected.locked:
        locked: Operation = collected.locked[operation_id]
        return locked
    _, rows = run_together((_LOCK, [operation_id]), (_READ, [operation_id]))
    if not rows:
        return None
    operation = _read(rows[0], collected, {})
    attempts = [build(Attempt, row[_ATTEMPT:]) for row in rows if row[_ATTEMPT] is not None]
    keep_attempts(operation, attempts)
    return operation


def lock_and_read_all(
    operation_ids: Collection[UUID], *, collected: collecting.Collected, spare_ids: int
) -> None:
    """Lock these operations, as far as there are such, and read them into `collected.locked`.

    As `lock_and_read` for each, but without their attempts. `spare_ids`: how many ids for evidence
    to draw beside one for each operation.
    """
    ids = sorted(operation_ids)
    _, rows, drawn, ((somebody_subscribed,),) = run_together(
        (_LOCK_ALL, [ids]),
        (_READ_ALL, [ids]),
        (_DRAW, [Int8(len(ids) + spare_ids)]),
        (_SUBSCRIBED, []),
    )
    accounts: dict[int, Account] = {}
    for row in rows:
        _read(row, collected, accounts)
    collected.spare_ids += [spare_id for (spare_id,) in drawn]
    collected.nobody_subscribed = not somebody_subscribed


def _read(
    row: Sequence[Any], collected: collecting.Collected | None, accounts: dict[int, Account]
) -> Operation:
    """An operation with its payment and account; what else was read goes into `collected`."""
    operation = build(Operation, row[:_PAYMENT])
    account = accounts.get(operation.account_id)
    if account is None:
        account = accounts[operation.account_id] = build(Account, row[_ACCOUNT:_TIP])
    related = operation._state.fields_cache
    related["payment"] = build(Payment, row[_PAYMENT:_ACCOUNT])
    related["account"] = account
    if collected is not None:
        number, entry_hash, spare_id, is_proposed = row[_TIP:_ATTEMPT]
        collected.locked[operation.pk] = operation
        tip = (number, entry_hash) if number else (0, CHAIN_START)
        collected.tips[chain_of(operation.pk)] = tip
        if spare_id is not None:
            collected.spare_ids.append(spare_id)
        if not is_proposed:
            collected.without_proposals.add(operation.pk)
    return operation


def attempts_of(operation: Operation) -> Sequence[Attempt]:
    """Its attempts, by number, as they were read or written with its lock."""
    kept: Sequence[Attempt] | None = operation.__dict__.get(_KEPT)
    return kept if kept is not None else list(operation.attempts.order_by("number"))


def keep_first_attempt(operation: Operation, attempt: Attempt) -> None:
    """Let `attempts_of` an operation that was just opened answer with this one."""
    operation.__dict__[_KEPT] = [attempt]


def keep_attempts(operation: Operation, attempts: list[Attempt]) -> None:
    """Let `attempts_of` and `operation.attempts.all()` answer with these objects."""
    for attempt in attempts:
        attempt.operation = operation
    operation.__dict__[_KEPT] = attempts
    rows: Any = operation.attempts.all()
    rows._result_cache = attempts
    rows._prefetch_done = True
    operation._prefetched_objects_cache = {"attempts": rows}  # type: ignore[attr-defined]
