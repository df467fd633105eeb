"""The console as people use it: real rows, real services, a sandbox behind them."""

from collections.abc import Callable, Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from .scenes import Scenes, person, scenes_on


@pytest.fixture
def scenes(settings: Settings) -> Iterator[Scenes]:
    """A sandbox of its own, and settings that lead to it."""
    with scenes_on(settings) as scenes:
        yield scenes


@pytest.fixture
def signed_in() -> Callable[[str], Client]:
    """Sign somebody in who has one role."""

    def sign_in(role: str, name: str = "") -> Client:
        client = Client()
        client.force_login(person(role, name))
        return client

    return sign_in
