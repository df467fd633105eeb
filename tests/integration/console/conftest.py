"""The console as people use it: real rows, real services, a sandbox behind them."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from django.test import Client
from pytest_django import Settings

from operations.sandbox import Sandbox
from operations.services.engine import default_engine

from .scenes import Scenes, person


@pytest.fixture
def scenes(settings: Settings) -> Iterator[Scenes]:
    """A sandbox of its own, and settings that lead to it."""
    with Sandbox() as sandbox:
        settings.RECONCILE = replace(
            settings.RECONCILE, stripe_api_base=sandbox.url, backoff_base_s=0.0
        )
        default_engine.cache_clear()
        yield Scenes(sandbox)
    default_engine.cache_clear()


@pytest.fixture
def signed_in() -> Callable[[str], Client]:
    """Sign somebody in who has one role."""

    def sign_in(role: str, name: str = "") -> Client:
        client = Client()
        client.force_login(person(role, name))
        return client

    return sign_in
