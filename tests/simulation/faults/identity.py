"""Faults in which operation a request stands for."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from operations.domain.standing import Asked, Related, Tie, stands_for
from operations.services import identifying
from tests.simulation.faults.planting import planted


@planted
def repeated_wish_opens_another() -> Iterator[None]:
    """Whoever asks again after the end gets a second refund."""

    def unrepeated(related: Sequence[Related], asked: Asked) -> Any:
        return stands_for(related, replace(asked, has_token=True))

    with patch.object(identifying, "stands_for", unrepeated):
        yield


@planted
def token_forgotten() -> Iterator[None]:
    """A caller's token is written down and never looked at."""
    with patch.object(identifying, "stands_for", _without(Tie.TOKEN)):
        yield


@planted
def tool_call_forgotten() -> Iterator[None]:
    """A resumed agent's tool call is a new request."""
    with patch.object(identifying, "stands_for", _without(Tie.TOOL_CALL)):
        yield


def _without(tie: Tie) -> Any:
    def stands(related: Sequence[Related], asked: Asked) -> Any:
        return stands_for([row for row in related if row.tie is not tie], asked)

    return stands
