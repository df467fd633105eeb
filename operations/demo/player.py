"""Plays the orders, most of them side by side, and follows each to its end."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from babel.numbers import format_currency
from django.db import connections

from operations.demo.agent import Agent, Told
from operations.demo.records import absence_is_recorded
from operations.demo.story import Fault, Order, Scene, Webhooks
from operations.domain.money import Money
from operations.domain.statuses import Status
from operations.sandbox.client import SandboxControl
from reconcile.local.stack import LocalStack

#: How long the whole story may take, in seconds; then it is judged as it stands.
PATIENCE_S = 60.0
_BETWEEN_STARTS_S = 0.3
_BETWEEN_READS_S = 0.5

_WORD_OF = {Status.SUCCEEDED: "refunded", Status.FAILED: "refused", Status.UNKNOWN: "checking"}


class BrokenOffError(Exception):
    """Somebody asked the demo to stop before the story was over."""


@dataclass(kw_only=True)
class Played:
    """What became of one order. `outside`: refunds that others made of its payment."""

    order: Order
    agent: Agent
    charge: str
    payment_intent: str
    outside: int = 0
    problem: str = ""
    calls_over: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a scene works with. `until` is when the patience ends, as a monotonic time."""

    stack: LocalStack
    control: SandboxControl
    api_key: str
    say: Callable[[str, str], None]
    until: float

    def kill(self, program: str, pid: int) -> None:
        """SIGKILL one process of a program of this stack; raises ValueError for any other."""
        if pid not in self.stack.processes(program)[1:]:
            raise ValueError(f"process {pid} is none of the {program} processes of this stack")
        os.kill(pid, signal.SIGKILL)


Play = Callable[[Stage, Played], None]


def play_story(*, stage: Stage, orders: Sequence[Order], scenes: dict[Scene, Play]) -> list[Played]:
    """Play all orders; returns when each is at its end or the patience is over.

    The order whose web process is killed comes first and alone: everything else that this process
    was answering would be lost with it. Raises BrokenOffError.
    """
    stage.control.clear_faults()
    stage.control.release_webhooks()
    first = [order for order in orders if order.scene is Scene.WEB_KILLED]
    rest = [order for order in orders if order.scene is not Scene.WEB_KILLED]
    # A worker is killed only after a pause of several seconds, so that order starts early.
    rest.sort(key=lambda order: order.scene is not Scene.WORKER_KILLED)
    played: dict[str, Played] = {}
    threads: list[threading.Thread] = []
    for order in [*first, *rest]:
        one = _set_up(stage, order)
        played[order.number] = one
        thread = threading.Thread(target=_play, args=(stage, one, scenes[order.scene]), daemon=True)
        thread.start()
        threads.append(thread)
        if order in first:
            _wait(stage, one.calls_over.is_set)
        _pause(stage, _BETWEEN_STARTS_S)
    _wait(stage, lambda: not any(thread.is_alive() for thread in threads))
    return [played[order.number] for order in orders]


def _set_up(stage: Stage, order: Order) -> Played:
    """Make the order's payment at the provider, and what will go wrong with it."""
    payment = stage.control.payment(amount=order.captured, currency=order.currency)
    charge = str(payment["charge"])
    for fault in order.faults:
        _arrange(stage.control, fault, charge)
    if order.webhooks is not Webhooks.DELIVER:
        stage.control.webhook_mode(order.webhooks, payment=charge)
    stage.say(order.number, f"{money_text(order)}: {order.about}")
    return Played(
        order=order,
        charge=charge,
        payment_intent=str(payment["payment_intent"]),
        agent=Agent(
            url=stage.stack.url,
            api_key=stage.api_key,
            run_id=f"run_{uuid4().hex[:12]}",
            on_told=lambda told: stage.say(order.number, f"the agent is told: {told.word}"),
        ),
    )


def _arrange(control: SandboxControl, fault: Fault, charge: str) -> None:
    control.fault(
        fault.kind,
        when=fault.when,
        times=fault.times,
        seconds=fault.seconds,
        code=fault.code,
        message=fault.message,
        payment=charge,
    )


def _play(stage: Stage, played: Played, scene: Play) -> None:
    """One order in its own thread; whatever goes wrong is kept for the report."""
    try:
        scene(stage, played)
        played.calls_over.set()
        if played.order.webhooks is Webhooks.HOLD:
            stage.control.release_webhooks(payment=played.charge)
        _follow(stage, played)
    except Exception as error:  # Told in the report.
        played.problem = f"{type(error).__name__}: {error}"
        stage.say(played.order.number, f"broken off: {played.problem}")
    finally:
        played.calls_over.set()
        connections.close_all()


def _follow(stage: Stage, played: Played) -> None:
    """Let the agent read how its operations stand until they are at the end they have to reach."""
    end = played.order.end
    if end.status is None:
        return
    wanted = _WORD_OF[end.status]
    waiting = played.agent.operations()
    while waiting and time.monotonic() < stage.until:
        waiting = [each for each in waiting if not _is_there(played.agent.read(each), wanted)]
        if waiting:
            time.sleep(_BETWEEN_READS_S)


def _is_there(told: Told, wanted: str) -> bool:
    if told.word != wanted:
        return False
    return wanted != "checking" or absence_is_recorded(told.operation_id)


def _wait(stage: Stage, is_over: Callable[[], bool]) -> None:
    """Wait until something is over or the patience is; raises BrokenOffError."""
    # Threads look at the patience themselves; the rest is for one that hangs in a call.
    while not is_over() and time.monotonic() < stage.until + 15:
        _pause(stage, 0.05)


def _pause(stage: Stage, seconds: float) -> None:
    if stage.stack.asked_to_stop.wait(seconds):
        raise BrokenOffError


def money_text(order: Order) -> str:
    """The order's amount for people."""
    return format_currency(
        Money(order.amount, order.currency).major(), order.currency.upper(), locale="en"
    )
