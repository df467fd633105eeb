"""What the tests of the engine play on: a provider that counts, a clock that can be moved, a way
to ask. The provider's own figures decide every test; the engine's rows come second."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from operations.domain.audit import Actor, ActorKind
from operations.domain.budgets import Budget
from operations.domain.identity import RefundInput
from operations.domain.key_window import KeyWindowPolicy
from operations.models import Account, ApiKey, Operation
from operations.providers import provider_for
from operations.providers.stripe import STRIPE_CONTRACT
from operations.sandbox import Sandbox, SandboxControl
from operations.services.accounts import account_for
from operations.services.engine import Engine
from operations.services.requesting import Asker, request_refund

SECRET = "whsec_of_the_tests"
OLD_SECRET = "whsec_that_is_being_replaced"
ENVIRONMENT = "tests"
API_KEY = "sk_test_of_the_tests"

CAPTURED = 10_000
#: A part of what was captured: of a full refund the provider would refuse the second one anyway.
PART = 3_800

AGENT = Actor(kind=ActorKind.API_KEY, id="1", name="Support agent")
ALICE = Actor(kind=ActorKind.PERSON, id="alice", name="Alice", address="127.0.0.1")
BOB = Actor(kind=ActorKind.PERSON, id="bob", name="Bob", address="127.0.0.1")
JOB = Actor(kind=ActorKind.JOB, id="tests", name="Tests")


@dataclass
class MovingClock:
    """UTC, with an offset that only grows: by hand, or because somebody slept."""

    offset: timedelta = timedelta()
    slept: list[float] = field(default_factory=list)
    frozen_at: datetime | None = None

    def __call__(self) -> datetime:
        return (self.frozen_at or datetime.now(UTC)) + self.offset

    def freeze(self) -> None:
        """Let time pass by hand and by sleeping only, however slow the machine is."""
        self.frozen_at = datetime.now(UTC)

    def advance(self, seconds: float) -> None:
        """Let time pass at once."""
        self.offset += timedelta(seconds=seconds)

    def sleep(self, seconds: float) -> None:
        """What the engine does between two sends; nobody waits for it."""
        self.slept.append(seconds)
        self.advance(seconds)


@dataclass
class Stage:
    """A sandbox, a clock, and an engine that uses both."""

    sandbox: Sandbox
    clock: MovingClock
    engine: Engine

    @property
    def control(self) -> SandboxControl:
        return self.sandbox.control

    def with_timeouts(self, *, connect_s: float = 2.0, read_s: float) -> Engine:
        """The engine with other patience."""
        return replace(
            self.engine,
            open_provider=opener(self.sandbox.url, connect_s=connect_s, read_s=read_s),
        )

    def with_contract(self, **promises: Any) -> Engine:
        """The engine with a provider that promises something else."""
        contract = replace(STRIPE_CONTRACT, **promises)
        open_provider = self.engine.open_provider
        return replace(
            self.engine,
            open_provider=lambda account: Instead(open_provider(account), contract=contract),
        )

    def in_real_time(self) -> Engine:
        """The engine for many at once: one caller's pause is nobody else's, and nobody's patience
        ends because the machine is busy."""
        return replace(
            self.with_timeouts(read_s=60),
            clock=lambda: datetime.now(UTC),
            sleep=time.sleep,
            lease_s=120,
        )

    def payment(self, amount: int = CAPTURED, currency: str = "usd", **given: Any) -> str:
        """A captured payment at the provider; its charge."""
        return str(self.control.payment(amount=amount, currency=currency, **given)["charge"])

    def ask(self, payment: str, *, engine: Engine | None = None, **given: Any) -> Operation:
        """Ask for a part of the payment, as the API does. See `ask`."""
        return ask(engine or self.engine, payment, **given)

    def ask_for_the_account(self) -> Account:
        """The default account's row, as the first request would make it."""
        return account_for(engine=self.engine, name="")

    def refunds(self, payment: str) -> int:
        """How many refunds the provider counts for this payment, failed ones aside."""
        return int(self.control.counts(payment=payment)["refunds"])

    def refunded(self, payment: str) -> int:
        """How much the provider has refunded of this payment."""
        return int(self.control.counts(payment=payment)["amount"])

    def sends(self, payment: str) -> int:
        """How many times the provider was asked to refund this payment."""
        return int(self.control.counts(payment=payment)["sends"])

    def keys(self, payment: str) -> set[str]:
        """The idempotency keys under which it was asked."""
        return set(self.control.counts(payment=payment)["by_payment"][payment]["keys"])


def ask(
    engine: Engine,
    payment: str,
    *,
    token: str = "",
    tool_call_id: str = "",
    agent_run_id: str = "",
    api_key: ApiKey | None = None,
    **changes: Any,
) -> Operation:
    """Ask for a part of the payment; `changes` are fields of the wish."""
    asker = Asker(
        actor=AGENT,
        api_key=api_key,
        token=token,
        tool_call_id=tool_call_id,
        agent_run_id=agent_run_id,
    )
    return request_refund(engine=engine, wish=wish(payment, **changes), asker=asker)


def wish(payment: str, **changes: Any) -> RefundInput:
    """A part of the payment for order 4417."""
    given: dict[str, Any] = {
        "account": "",
        "order_id": "4417",
        "reference": "",
        "amount": PART,
        "currency": "usd",
        "payment": payment,
    }
    return RefundInput(**(given | changes))


def engine_for(sandbox_url: str, clock: MovingClock) -> Engine:
    """An engine with the settings' numbers, that never waits and never rolls dice."""
    return Engine(
        clock=clock,
        sleep=clock.sleep,
        jitter=lambda: 0.5,
        budget=Budget(
            attempts_per_call=3,
            attempts_per_operation=6,
            call_deadline_s=30.0,
            backoff_base_s=0.5,
            send_s=7.0,
        ),
        key_window=KeyWindowPolicy(window_s=86_400, margin_s=900),
        lease_s=33.0,
        lookup_schedule_s=(10, 60, 300, 900, 3_600, 21_600, 86_400),
        environment=ENVIRONMENT,
        livemode=False,
        second_person_above={"usd": 10_000},
        repeat_window_s=86_400,
        webhook_secrets=(SECRET,),
        open_provider=opener(sandbox_url),
    )


def opener(url: str, *, connect_s: float = 2.0, read_s: float = 5.0) -> Callable[[Account], Any]:
    """Opens the real adapter, with the real SDK behind it, against an address."""
    return lambda account: provider_for(
        account.provider,
        api_key=API_KEY,
        api_base=url,
        connect_timeout_s=connect_s,
        read_timeout_s=read_s,
    )


def split_opener(*, reads: str, sends: str) -> Callable[[Account], Any]:
    """Opens an adapter that reads at one address and sends to another."""
    return lambda account: Instead(
        opener(reads)(account),
        create_refund=opener(sends, connect_s=0.5)(account).create_refund,
    )


class Instead:
    """A provider of which one thing is another's."""

    def __init__(self, provider: Any, **others: Any) -> None:
        self._provider = provider
        vars(self).update(others)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)


class AtOnce:
    """Calls made in threads that start together; a result is what was returned, or raised."""

    def __init__(self, calls: Sequence[Callable[[], Any]]) -> None:
        self._done: list[Any] = []
        self._more = threading.Condition()
        barrier = threading.Barrier(len(calls))
        self._threads = [
            threading.Thread(target=self._run, args=(barrier, call), daemon=True) for call in calls
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, barrier: threading.Barrier, call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            result = call()
        except Exception as error:
            result = error
        finally:
            connection.close()
        with self._more:
            self._done.append(result)
            self._more.notify_all()

    def so_far(self) -> list[Any]:
        """The results that there are, in the order in which they came."""
        with self._more:
            return list(self._done)

    def wait_for(self, number: int, *, timeout_s: float = 30) -> None:
        """Wait until so many calls have ended."""
        with self._more:
            ended = self._more.wait_for(lambda: len(self._done) >= number, timeout_s)
        assert ended, f"{len(self._done)} of {number} calls ended: {self._done}"

    def results(self) -> list[Any]:
        """All results, once every call has ended."""
        self.wait_for(len(self._threads))
        for thread in self._threads:
            thread.join()
        return self.so_far()
