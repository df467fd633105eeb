"""Faults in which operation a request stands for."""

from collections.abc import Iterator
from unittest.mock import patch

from operations.services import identifying
from tests.simulation.faults.planting import planted


@planted
def repeated_wish_opens_another() -> Iterator[None]:
    """Whoever asks again after the end gets a second refund."""
    with patch.object(identifying, "_repeated", lambda *about: None):
        yield


@planted
def token_forgotten() -> Iterator[None]:
    """A caller's token is written down and never looked at."""
    with patch.object(identifying, "_by_token", lambda *about: None):
        yield


@planted
def tool_call_forgotten() -> Iterator[None]:
    """A resumed agent's tool call is a new request."""
    with patch.object(identifying, "_by_tool_call", lambda asker: None):
        yield
