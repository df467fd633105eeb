"""Restarts and the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import stripe
from stripe.params import RefundCreateParams

from operations.sandbox import Sandbox, SandboxControl
from operations.sandbox.state import JournalUnreadableError

from .conftest import SECRET, Receiver, is_replay

ROOT = Path(__file__).resolve().parents[3]
Started = tuple[subprocess.Popen[str], SandboxControl]


@pytest.fixture
def run() -> Iterator[Callable[..., Started]]:
    """Starts `python -m operations.sandbox` and waits for its ready line."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> Started:
        process = subprocess.Popen(
            [sys.executable, "-m", "operations.sandbox", "--port", "0", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        running.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("sandbox ready http://127.0.0.1:")
        return process, SandboxControl(line.split()[-1])

    yield start
    for process in running:
        process.kill()
        process.communicate()


def test_state_survives_a_restart(
    connect: Callable[..., stripe.StripeClient], tmp_path: Path
) -> None:
    state = tmp_path / "state.jsonl"
    with Sandbox(state=state) as sandbox:
        client, payment = connect(sandbox), sandbox.control.payment(amount=1_000)
        params: RefundCreateParams = {"charge": payment["charge"], "amount": 400}
        made = client.v1.refunds.create(params, {"idempotency_key": "k"})
        sandbox.control.set_refund_status(made.id, "failed")
        before = sandbox.control.counts()
    with Sandbox(state=state) as sandbox:
        client = connect(sandbox)
        assert sandbox.control.counts() == before
        again = client.v1.refunds.create(params, {"idempotency_key": "k"})
        assert again.id == made.id
        assert is_replay(again)
        assert client.v1.refunds.retrieve(made.id).status == "failed"
        assert client.v1.charges.retrieve(payment["charge"]).amount_refunded == 0
        assert len(client.v1.events.list().data) == 5
        client.v1.refunds.create(params)
        listed = client.v1.refunds.list({"charge": payment["charge"]}).data
        assert [refund.status for refund in listed] == ["succeeded", "failed"]


def test_clock_and_forgotten_keys_survive_a_restart(
    connect: Callable[..., stripe.StripeClient], tmp_path: Path
) -> None:
    state = tmp_path / "state.jsonl"
    with Sandbox(state=state) as sandbox:
        payment = sandbox.control.payment(amount=1_000)
        params: RefundCreateParams = {"charge": payment["charge"], "amount": 400}
        connect(sandbox).v1.refunds.create(params, {"idempotency_key": "k"})
        now = sandbox.control.advance_clock(5_000)
        sandbox.control.expire_keys("k")
    with Sandbox(state=state) as sandbox:
        assert sandbox.control.advance_clock(0) >= now
        connect(sandbox).v1.refunds.create(params, {"idempotency_key": "k"})
        assert sandbox.control.counts()["refunds"] == 2


def test_kill_loses_nothing_that_was_answered_and_events_arrive_later(
    run: Callable[..., Started],
    connect: Callable[..., stripe.StripeClient],
    receiver: Receiver,
    tmp_path: Path,
) -> None:
    arguments = ("--state", str(tmp_path / "state.jsonl"), "--webhook-secret", SECRET)
    process, control = run(*arguments, "--webhook-url", "http://127.0.0.1:1/")
    payment = control.payment(amount=1_000)
    client = stripe.StripeClient(
        "sk_test_x", max_network_retries=0, base_addresses={"api": control.url}
    )
    params: RefundCreateParams = {"charge": payment["charge"], "amount": 400}
    made = client.v1.refunds.create(params, {"idempotency_key": "k"})
    process.kill()
    process.wait()
    _, control = run(*arguments, "--webhook-url", receiver.url)
    client = stripe.StripeClient(
        "sk_test_x", max_network_retries=0, base_addresses={"api": control.url}
    )
    assert client.v1.refunds.create(params, {"idempotency_key": "k"}).id == made.id
    assert control.counts()["refunds"] == 1
    control.wait_delivered()
    assert sorted(receiver.types()) == ["charge.refunded", "refund.created"]


def test_kill_between_the_refund_and_its_slow_answer_keeps_the_key(
    run: Callable[..., Started], tmp_path: Path
) -> None:
    state = ("--state", str(tmp_path / "state.jsonl"))
    process, control = run(*state)
    payment = control.payment(amount=1_000)
    params: RefundCreateParams = {"charge": payment["charge"], "amount": 400}
    control.fault("slow", when="after", seconds=600)

    def send(to: SandboxControl) -> stripe.Refund | None:
        client = stripe.StripeClient(
            "sk_test_x", max_network_retries=0, base_addresses={"api": to.url}
        )
        try:
            return client.v1.refunds.create(params, {"idempotency_key": "k"})
        except stripe.APIConnectionError:
            return None

    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(send, control)
        control.wait_in_flight()
        process.kill()
        assert lost.result(5) is None
    _, control = run(*state)
    resent = send(control)
    assert resent is not None
    assert is_replay(resent)
    assert control.counts()["by_payment"][payment["charge"]]["refunds"] == 1
    assert [one["outcome"] for one in control.sends()] == ["interrupted", "replayed"]


def test_torn_last_line_of_the_state_is_left_out_and_any_other_is_an_error(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state.jsonl"
    with Sandbox(state=state) as sandbox:
        sandbox.control.payment(amount=1_000)
    whole = state.read_text()
    state.write_text(whole + '["charge", {"id": "ch_')
    with Sandbox(state=state) as sandbox:
        assert len(sandbox.control.counts()["by_payment"]) == 2
    assert all(json.loads(line) for line in state.read_text().splitlines())
    state.write_text("torn\n" + whole)
    with pytest.raises(JournalUnreadableError, match="line 1"):
        Sandbox(state=state).start()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_it_at_once_even_with_a_hanging_call(
    run: Callable[..., Started], number: signal.Signals
) -> None:
    process, control = run()
    payment = control.payment(amount=1_000)
    control.fault("hang", seconds=600)
    client = stripe.StripeClient(
        "sk_test_x", max_network_retries=0, base_addresses={"api": control.url}
    )
    failures: list[Exception] = []

    def send() -> None:
        try:
            client.v1.refunds.create({"charge": payment["charge"]})
        except stripe.APIConnectionError as error:
            failures.append(error)

    caller = threading.Thread(target=send)
    caller.start()
    control.wait_in_flight()
    started = time.monotonic()
    process.send_signal(number)
    assert process.wait(5) == 0
    assert time.monotonic() - started < 1
    caller.join(5)
    assert len(failures) == 1


def test_port_that_is_taken_is_said_so(run: Callable[..., Started]) -> None:
    _, control = run()
    second = subprocess.run(
        [sys.executable, "-m", "operations.sandbox", "--port", control.url.rsplit(":", 1)[1]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 1
    assert "can't listen on" in second.stderr


def test_it_imports_nothing_of_the_product_and_nothing_to_install() -> None:
    code = (
        "import sys, operations.sandbox.__main__ as m; "
        "print(sorted({n.split('.')[0] for n in sys.modules} "
        "- set(sys.stdlib_module_names) - {'__main__', '__mp_main__'}), "
        "sorted(n for n in sys.modules if n.startswith('operations') "
        "and not n.startswith('operations.sandbox')))"
    )
    shown = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert shown.stdout.strip() == "['operations'] ['operations']"
