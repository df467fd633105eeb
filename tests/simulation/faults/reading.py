"""Faults in what is read into an answer."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from operations.domain.answers import Answer, AnswerKind
from operations.domain.classify import Classification, Outcome, classify
from operations.services import finishing
from tests.simulation.faults.planting import planted
from tests.simulation.provider import SimulatedProvider

_REFUSED = Classification(outcome=Outcome.REFUSED)


def _read_wrongly(wrong: Callable[[Answer], Classification | None]) -> Any:
    def read(answer: Answer, **about: Any) -> Classification:
        return wrong(answer) or classify(answer, **about)

    return patch.object(finishing, "classify", read)


@planted
def conflict_read_as_refused() -> Iterator[None]:
    """A 409 for a key in use is taken for a refusal of the refund."""
    with _read_wrongly(lambda answer: _REFUSED if answer.http_status == 409 else None):
        yield


@planted
def rate_limit_read_as_refused() -> Iterator[None]:
    """A 429 is taken for a refusal of the refund, on a resend too."""
    with _read_wrongly(lambda answer: _REFUSED if answer.http_status == 429 else None):
        yield


@planted
def timeout_read_as_refused() -> Iterator[None]:
    """A timeout is taken for proof of failure."""
    lost = AnswerKind.CONNECTION_LOST
    with _read_wrongly(lambda answer: _REFUSED if answer.kind is lost else None):
        yield


@planted
def interrupted_read_as_not_executed() -> Iterator[None]:
    """A send whose process died is taken for one that never left."""
    not_executed = Classification(outcome=Outcome.NOT_EXECUTED)
    interrupted = AnswerKind.INTERRUPTED
    with _read_wrongly(lambda answer: not_executed if answer.kind is interrupted else None):
        yield


@planted
def refusal_on_resend_believed() -> Iterator[None]:
    """A refusal of a resend is taken to speak of the first send as well."""

    def read(answer: Answer, **about: Any) -> Classification:
        return classify(answer, **{**about, "earlier_in_doubt": False})

    with patch.object(finishing, "classify", read):
        yield


@planted
def saved_error_sent_again() -> Iterator[None]:
    """A 500 is taken for one that a resend could mend."""
    contract = replace(SimulatedProvider.contract, frozen_statuses=frozenset())
    with patch.object(SimulatedProvider, "contract", contract):
        yield
