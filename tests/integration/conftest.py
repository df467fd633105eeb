"""A sandbox of its own for every test, an engine that sends to it, and processes that do too."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection

from operations.sandbox import Sandbox
from operations.services.engine import default_engine
from operations.services.keys import create_api_key

from .agent import Agent
from .stage import API_KEY, ENVIRONMENT, JOB, OLD_SECRET, SECRET, MovingClock, Stage, engine_for

ROOT = Path(__file__).parents[2]


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A fresh provider and an engine for it."""
    with Sandbox(webhook_secret=SECRET, webhook_base_delay_s=0.02) as sandbox:
        clock = MovingClock()
        yield Stage(sandbox=sandbox, clock=clock, engine=engine_for(sandbox.url, clock))


@pytest.fixture
def process_env(stage: Stage) -> dict[str, str]:
    """The environment of a process that uses the test's database and sandbox."""
    where = connection.settings_dict
    database = f"postgresql://{where['USER']}@/{where['NAME']}?host={quote(where['HOST'], safe='')}"
    return os.environ | {
        "DATABASE_URL": database,
        "STRIPE_API_BASE": stage.sandbox.url,
        "STRIPE_WEBHOOK_SECRETS": SECRET,
    }


@pytest.fixture
def start_sender(process_env: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a `sender` that is ready to ask; a line to its standard input lets it go."""
    started: list[subprocess.Popen[str]] = []

    def start(payment: str, moment: str = "") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.sender", payment, moment],
            cwd=ROOT,
            env=process_env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def served(stage: Stage, settings: Any) -> Iterator[Stage]:
    """The stage, with the ways in working on its sandbox and with its secret."""
    settings.RECONCILE = replace(
        settings.RECONCILE,
        environment=ENVIRONMENT,
        stripe_api_key=API_KEY,
        stripe_api_base=stage.sandbox.url,
        stripe_webhook_secrets=(OLD_SECRET, SECRET),
        backoff_base_s=0.01,
        read_timeout_s=30,
        call_deadline_s=120,
        lease_s=60,
    )
    default_engine.cache_clear()
    yield stage
    default_engine.cache_clear()


@pytest.fixture
def agent(served: Stage) -> Agent:
    """A caller of the API with a key of its own."""
    _, secret = create_api_key(engine=default_engine(), name="Support agent", actor=JOB)
    return Agent(secret=secret)
