"""Finishing: the answer to an attempt is saved, and what follows from it is carried out.

Whoever sent writes the answer on what its own transaction committed before the send, if it settles
the operation and nobody has changed that meanwhile. All else is decided under the lock.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError, InternalError

from operations.domain.answers import Answer, AnswerKind
from operations.domain.audit import Actor
from operations.domain.budgets import CallBudget
from operations.domain.classify import Classification, classify
from operations.domain.contradiction import of_an_answer
from operations.domain.next_step import Send, in_doubt
from operations.domain.statuses import UNRESOLVED, Status
from operations.models import Attempt, Operation, StaleOperation, collecting
from operations.models.audit import chain_of
from operations.queries.locked import attempts_of, keep_first_attempt
from operations.services.answers import learned_from, save_answer
from operations.services.believing import take_refund
from operations.services.deciding import (
    attempt_state,
    carry_out,
    decide_next,
    finished_attempts,
    release,
)
from operations.services.engine import Engine
from operations.services.learning import Learned
from operations.services.settling import lock, raise_attention, write_evidence


class _NotSettled(Exception):
    """The answer leaves something to decide; nothing was written."""


@dataclass(frozen=True)
class Begun:
    """An attempt that was committed, and what its transaction knows of its operation."""

    attempt: Attempt
    known: collecting.Known


@dataclass(frozen=True)
class Finished:
    """An operation after one attempt; `resume_at` (UTC) when the same call sends again."""

    operation: Operation
    resume_at: datetime | None = None


def known_of(collected: collecting.Collected, attempt: Attempt) -> collecting.Known:
    """What is known of an operation that was opened with its first attempt."""
    operation = attempt.operation
    keep_first_attempt(operation, attempt)
    return collected.known(operation, chain_of(operation.pk))


def finish_as_committed(
    *, engine: Engine, begun: Begun, answer: Answer, actor: Actor, call: CallBudget
) -> Operation | None:
    """Save an answer that settles the operation, with neither lock nor read; the operation then.

    All that is written goes out in one statement, on condition that the operation is as it was
    committed before the send. None, with nothing written, when somebody has changed it or the
    answer leaves something to decide.
    """
    attempt = begun.attempt
    try:
        with collecting.collecting(known=begun.known):
            operation = finish_attempt(
                engine=engine,
                operation_id=attempt.operation_id,
                attempt_id=attempt.pk,
                answer=answer,
                actor=actor,
                call=call,
            ).operation
            if operation.status in UNRESOLVED or operation.attention:
                raise _NotSettled
            return operation
    except (_NotSettled, StaleOperation, collecting.RowMoved, IntegrityError, InternalError):
        return None


@collecting.collecting()
def finish_attempt(
    *,
    engine: Engine,
    operation_id: UUID,
    attempt_id: UUID,
    answer: Answer,
    actor: Actor,
    call: CallBudget | None,
) -> Finished:
    """Save an answer and carry out what follows from it.

    It says when to send again if this call goes on and keeps its lease. An answer to
    an attempt that the sweep has already given up is kept as evidence, and a refund in it is
    believed; it never overwrites what happened since.
    """
    operation = lock(operation_id)
    attempt = next(row for row in attempts_of(operation) if row.pk == attempt_id)
    now = engine.clock()
    earlier = finished_attempts(operation)
    reading = classify(
        answer,
        terms=operation.terms(),
        earlier_in_doubt=in_doubt([attempt_state(row) for row in earlier]),
        contract=engine.provider(operation.account).contract,
    )
    learned = learned_from(attempt, answer, reading, actor, now)
    if attempt.outcome:
        _keep_late_answer(operation, reading, learned, now)
        return Finished(operation)
    save_answer(attempt, answer, reading, now)
    evidence = write_evidence(operation, learned, now=now, refund=reading.refund)
    if reading.attention:
        said = str(answer.http_status or answer.kind)
        found = of_an_answer(reading.attention, attempt=str(attempt.pk), said=said)
        raise_attention(operation, found, learned=learned, now=now, evidence=evidence)
    if operation.status != Status.OPEN:
        # A webhook or a look-up was faster: the answer is evidence beside it.
        if reading.refund is not None:
            take_refund(operation, reading.refund, learned=learned, now=now, evidence=evidence)
        release(operation, now)
        return Finished(operation)
    step = decide_next(engine, operation, now)
    if isinstance(step, Send) and call is not None and call.allows(step.at, engine.budget):
        operation.change(
            now=now,
            next_send_at=step.at,
            lease_expires_at=step.at + timedelta(seconds=engine.lease_s),
        )
        return Finished(operation, step.at)
    release(operation, now)
    carry_out(engine, operation, step, learned=(learned, evidence), now=now)
    return Finished(operation)


@collecting.collecting()
def give_up_attempt(*, engine: Engine, operation_id: UUID, actor: Actor) -> bool:
    """Finish an attempt whose lease ran out as interrupted, and let the same rule go on.

    True when there was one. Harmless when done twice.
    """
    operation = lock(operation_id)
    now = engine.clock()
    if operation.lease_expires_at is None or operation.is_leased(now):
        return False
    attempt = next((row for row in attempts_of(operation) if not row.outcome), None)
    if attempt is not None:
        interrupted = Answer(
            kind=AnswerKind.INTERRUPTED,
            message="The process that was sending went away before the answer was saved.",
        )
        finish_attempt(
            engine=engine,
            operation_id=operation_id,
            attempt_id=attempt.pk,
            answer=interrupted,
            actor=actor,
            call=None,
        )
        return True
    release(operation, now)
    if operation.status == Status.OPEN:
        carry_out(engine, operation, decide_next(engine, operation, now), learned=None, now=now)
    return True


def _keep_late_answer(
    operation: Operation, reading: Classification, learned: Learned, now: datetime
) -> None:
    evidence = write_evidence(operation, learned, now=now, refund=reading.refund)
    if reading.refund is not None:
        take_refund(operation, reading.refund, learned=learned, now=now, evidence=evidence)
