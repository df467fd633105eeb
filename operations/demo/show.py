"""The whole demo: start the stage, play, report, stay until told to stop, and leave nothing."""

import json
import signal
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

from django.core.management.base import OutputWrapper
from django.db import connections

from operations.demo.office import audit_of, work
from operations.demo.people import Login, make_agent_key, make_logins
from operations.demo.player import PATIENCE_S, BrokenOffError, Played, Stage, play_story
from operations.demo.records import order_in_run, run_number, states
from operations.demo.report import make_rows, table, totals, totals_line
from operations.demo.scenes import SCENES
from operations.demo.stage import LOG_NAME, StackLog, make_stack
from operations.demo.story import STORY, Order
from operations.domain.statuses import Status
from operations.sandbox.client import SandboxControl
from reconcile.local.stack import LocalStack, StackError

_USUAL_PORT = 8_000
#: The order that the docs tell of.
_LOST_ANSWER = "4417"
# A story that was broken off is not waited for: what is in flight is what the next start finds.
_GRACE_S, _GRACE_BROKEN_OFF_S = 10, 2


class Show:
    """One run of the demo. `progress` gets what happens, `out` the result."""

    def __init__(
        self, *, data_dir: Path, out: OutputWrapper, progress: OutputWrapper, as_json: bool
    ) -> None:
        self._data_dir = data_dir
        self._out = out
        self._progress = progress
        self._as_json = as_json
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._began = time.monotonic()

    def run(self, *, port: int | None, once: bool) -> bool:
        """Play the story; says whether it ended as it has to. Raises StackError.

        A signal ends it early, in order; then the answer is False unless the story was over.
        """
        log = StackLog(self._data_dir / LOG_NAME, self._tell)
        stack = make_stack(data_dir=self._data_dir, port=_choose(port, once=once), log=log)
        _stop_on_signals(stack)
        try:
            self._tell(f"Starting the local stack; its output goes to {log.path}")
            stack.start()
            stack.wait_ready()
            return self._play(stack, once=once)
        except (StackError, BrokenOffError):
            if not stack.asked_to_stop.is_set():
                raise
            self._tell("Stopped before the story was over.")
            return False
        finally:
            played = self._over.is_set()
            self._over.set()
            self._tell("Stopping.")
            connections.close_all()
            stack.stop(grace_s=_GRACE_S if played else _GRACE_BROKEN_OFF_S)

    def _play(self, stack: LocalStack, *, once: bool) -> bool:
        run = run_number([order.number for order in STORY])
        api_key = make_agent_key(run)
        logins = make_logins(self._data_dir)
        self._tell(f"Ready at {stack.url}. The Northwind story, run {run}:")
        self._began = time.monotonic()
        control = SandboxControl(str(stack.sandbox_url))
        stage = Stage(
            stack=stack,
            control=control,
            api_key=api_key,
            say=self._say,
            until=self._began + PATIENCE_S,
        )
        orders = [order.named(order_in_run(order.number, run)) for order in STORY]
        played = play_story(stage=stage, orders=orders, scenes=SCENES)
        self._over.set()
        figures = self._report(played, control, run)
        self._let_people_work(stack, played, figures)
        if not self._as_json:
            self._write_out(totals_line(figures))
        if not once:
            self._tell_where(stack, api_key, logins, orders[1], played[1])
        if self._as_json:
            self._write_out(json.dumps(figures))
        if not once:
            stack.asked_to_stop.wait()
        return bool(figures["ok"])

    def _report(
        self, played: Sequence[Played], control: SandboxControl, run: int
    ) -> dict[str, Any]:
        seconds = time.monotonic() - self._began
        counts = control.counts()
        rows = make_rows(played, counts)
        for line in ["", *table(rows), ""]:
            self._tell(line)
        return totals(rows, counts, run=run, seconds=seconds)

    def _let_people_work(
        self, stack: LocalStack, played: Sequence[Played], figures: dict[str, Any]
    ) -> None:
        """The operator's part, and what the audit trail says in the end."""
        found = [state for one in played for state in states(one.agent.operations())]
        unknown = [UUID(one.operation_id) for one in found if one.status is Status.UNKNOWN]
        for sentence in work(unknown, stack.asked_to_stop.wait):
            self._tell(sentence)
        lost = next(one for one in played if one.order.number.startswith(_LOST_ANSWER))
        ids = [UUID(each) for each in lost.agent.operations()]
        is_whole, sentence = audit_of(ids, lost.order.number)
        self._tell(sentence)
        figures |= {"audit_whole": is_whole, "ok": figures["ok"] and is_whole}

    def _tell_where(
        self, stack: LocalStack, api_key: str, logins: Sequence[Login], order: Order, one: Played
    ) -> None:
        """Where to look, who can log in, and how to ask for a refund oneself."""
        body = {
            "order_id": order.number,
            "amount": 500,
            "currency": order.currency,
            "payment": one.payment_intent,
            "reference": "by-hand",
        }
        lines = [
            "",
            f"Console: {stack.url}/",
            *(f"  {one.name:<9} {one.password}   {one.may}" for one in logins),
            "",
            f"API key: {api_key}",
            f"  curl {stack.url}/api/v1/refunds -H 'Authorization: Bearer {api_key}' \\",
            f"    -H 'Content-Type: application/json' -d '{json.dumps(body)}'",
            "",
            "Ctrl-C stops everything.",
        ]
        for line in lines:
            self._tell(line)

    def _say(self, order: str, text: str) -> None:
        if not self._over.is_set():
            self._tell(f"{time.monotonic() - self._began:5.1f} s  {order:<6}  {text}")

    def _tell(self, line: str) -> None:
        self._write(self._progress, line)

    def _write_out(self, line: str) -> None:
        self._write(self._out, line)

    def _write(self, where: OutputWrapper, line: str) -> None:
        with self._guard, suppress(OSError, ValueError):  # A reader that left stops nothing.
            where.write(line or "\n", ending="" if not line else "\n")
            where.flush()


def _choose(port: int | None, *, once: bool) -> int:
    """The port that was asked for, else the usual one if it is free and somebody will look."""
    if port is not None:
        return port
    if once:
        return 0
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", _USUAL_PORT))
        except OSError:
            return 0
    return _USUAL_PORT


def _stop_on_signals(stack: LocalStack) -> None:
    """Let a signal end the demo in order, and a second one at once."""

    def end(number: int, frame: FrameType | None) -> None:
        if stack.asked_to_stop.is_set():
            stack.kill()
        stack.asked_to_stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
