"""One operation under its lock, with all that a decision about it rests on."""

from typing import Any
from uuid import UUID

from operations.domain.audit import CHAIN_START
from operations.models import Account, Attempt, Operation, Payment, collecting
from operations.models.audit import chain_of
from operations.models.evidence import NEXT_EVIDENCE_ID
from operations.models.statements import build, columns, run_together, width

_LOCK = "SELECT 1 FROM operations_operation WHERE id = $1 FOR NO KEY UPDATE"

# Sent after the lock is held: a statement that waits for a lock sees other tables as they were
# before it waited.
_READ = f"""
SELECT {columns(Operation, "o")}, {columns(Payment, "p")}, {columns(Account, "a")},
       {columns(Attempt, "t")}, tip.number, tip.entry_hash, (SELECT {NEXT_EVIDENCE_ID})
FROM operations_operation AS o
JOIN operations_payment AS p ON p.id = o.payment_id
JOIN operations_account AS a ON a.id = o.account_id
LEFT JOIN operations_attempt AS t ON t.operation_id = o.id
LEFT JOIN LATERAL (
    SELECT number, entry_hash FROM operations_auditentry
    WHERE chain = $1 ORDER BY number DESC LIMIT 1
) AS tip ON true
WHERE o.id = $2
ORDER BY t.number
"""  # noqa: S608 - columns of our own tables

_PAYMENT = width(Operation)
_ACCOUNT = _PAYMENT + width(Payment)
_ATTEMPT = _ACCOUNT + width(Account)
_TIP = _ATTEMPT + width(Attempt)


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
    chain = chain_of(operation_id)
    _, rows = run_together((_LOCK, [operation_id]), (_READ, [chain, operation_id]))
    if not rows:
        return None
    first = rows[0]
    operation = build(Operation, first[:_PAYMENT])
    operation.payment = build(Payment, first[_PAYMENT:_ACCOUNT])
    operation.account = build(Account, first[_ACCOUNT:_ATTEMPT])
    attempts = [build(Attempt, row[_ATTEMPT:_TIP]) for row in rows if row[_ATTEMPT] is not None]
    keep_attempts(operation, attempts)
    if collected is not None:
        number, entry_hash, spare_id = first[_TIP:]
        collected.locked[operation_id] = operation
        collected.tips[chain] = (number, entry_hash) if number else (0, CHAIN_START)
        collected.spare_ids.append(spare_id)
    return operation


def keep_attempts(operation: Operation, attempts: list[Attempt]) -> None:
    """Let `operation.attempts.all()` answer with these objects, as a prefetch does."""
    for attempt in attempts:
        attempt.operation = operation
    rows: Any = operation.attempts.all()
    rows._result_cache = attempts
    rows._prefetch_done = True
    operation._prefetched_objects_cache = {"attempts": rows}  # type: ignore[attr-defined]
