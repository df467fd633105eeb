"""Faults in when and how often something is sent."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

from django.db import transaction
from django.db.models import Model

from operations.domain import next_step
from operations.domain.answers import Answer, AnswerKind
from operations.domain.standing import Related, of_payment
from operations.domain.statuses import Status
from operations.models import Attempt, Operation, collecting
from operations.services import opening, requesting, sending, sweeping
from operations.services.engine import Engine
from operations.services.guarding import GuardedProvider
from tests.simulation import callers, jobs
from tests.simulation.faults.planting import planted
from tests.simulation.provider import SimulatedProvider

_send = GuardedProvider.create_refund
_arrive = SimulatedProvider.create_refund


@planted
def new_key_on_retry() -> Iterator[None]:
    """Every send gets a key of its own."""
    sends: list[str] = []

    def create_refund(
        self: GuardedProvider, *, parameters: Mapping[str, Any], idempotency_key: str, account: str
    ) -> Answer:
        sends.append(idempotency_key)
        key = f"{idempotency_key}-{len(sends)}"
        return _send(self, parameters=parameters, idempotency_key=key, account=account)

    with patch.object(GuardedProvider, "create_refund", create_refund):
        yield


@planted
def library_retries() -> Iterator[None]:
    """The provider's library sends again by itself, and nobody writes that down."""

    def create_refund(self: SimulatedProvider, **call: Any) -> Answer:
        answer = _arrive(self, **call)
        for _ in range(2):
            if answer.kind is not AnswerKind.CONNECTION_LOST and answer.http_status not in (
                409,
                503,
            ):
                break
            answer = _arrive(self, **call)
        return answer

    with patch.object(SimulatedProvider, "create_refund", create_refund):
        yield


@planted
def transaction_around_the_send() -> Iterator[None]:
    """Everything up to the answer is one transaction, which a crash undoes."""
    with (
        patch.object(GuardedProvider, "_refuse_in_transaction", lambda self, name: None),
        patch.object(callers, "request_refund", transaction.atomic(requesting.request_refund)),
        patch.object(jobs, "check", transaction.atomic(sweeping.check)),
    ):
        yield


@planted
def attempt_written_after_the_send() -> Iterator[None]:
    """The attempt is written when its answer is there, not before the bytes leave."""
    unwritten: dict[str, Attempt] = {}
    insert = collecting.insert

    def keep(row: Model) -> None:
        if isinstance(row, Attempt):
            unwritten[row.idempotency_key] = row
        else:
            insert(row)

    def create_refund(self: GuardedProvider, **call: Any) -> Answer:
        answer = _send(self, **call)
        attempt = unwritten.pop(call["idempotency_key"], None)
        if attempt is not None:
            insert(attempt)
        return answer

    with (
        patch.object(collecting, "insert", keep),
        patch.object(GuardedProvider, "create_refund", create_refund),
    ):
        yield


@planted
def lease_not_looked_at() -> Iterator[None]:
    """Nobody looks whether a send is in flight before sending again."""

    def is_leased(self: Operation, now: datetime) -> bool:
        return False

    with patch.object(Operation, "is_leased", is_leased):
        yield


@planted
def sends_of_one_payment_side_by_side() -> Iterator[None]:
    """Two refunds of one payment are sent at the same time."""
    with (
        patch.object(requesting, "may_send_at_once", lambda *about: True),
        patch.object(sending, "_lock_payment_of", lambda *about: False),
    ):
        yield


@planted
def sends_after_a_long_sleep() -> Iterator[None]:
    """A process that was frozen after it wrote its attempt down sends when it wakes up."""

    def never(engine: Engine, attempt: Attempt) -> bool:
        engine.clock()
        return False

    with patch.object(sending, "_woke_too_late", never):
        yield


@planted
def key_window_forgotten() -> Iterator[None]:
    """A key is trusted for good."""

    def never(*, first_send: datetime, **about: Any) -> datetime:
        return first_send + timedelta(days=1_000)

    with (
        patch.object(next_step, "window_closes_at", never),
        patch.object(sending, "window_closes_at", never),
    ):
        yield


@planted
def budget_not_counted() -> Iterator[None]:
    """An operation is sent as often as it is asked for."""

    def decide(*, budget: Any, **about: Any) -> Any:
        endless = type(budget)(
            **{name: getattr(budget, name) for name in budget.__slots__}
            | {"attempts_per_operation": 10_000}
        )
        return next_step.decide(budget=endless, **about)

    with patch.object(sending, "decide", decide):
        yield


@planted
def lost_sends_not_swept() -> Iterator[None]:
    """Nobody looks for sends whose process died."""
    with (
        patch.object(jobs, "give_up_lost_sends", lambda **about: 0),
        patch.object(sending, "give_up_attempt", lambda **about: False),
    ):
        yield


@planted
def till_without_the_unresolved() -> Iterator[None]:
    """Only what has settled counts when the till is looked at."""

    def settled(related: Iterable[Related]) -> list[Related]:
        return [row for row in of_payment(related) if row.status is Status.SUCCEEDED]

    with patch.object(opening, "of_payment", settled):
        yield
