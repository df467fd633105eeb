"""Delivery over real sockets: signed, repeated under one id, in order, nobody holding up others."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from operations.domain.statuses import Attention
from operations.models import AuditEntry, Delivery, DeliveryState, DeliveryTry, Subscription
from operations.services import subscribing
from operations.services.notifying import claim_due, deliver_due, notices_wait
from operations.services.posting import post
from operations.services.subscribing import SubscriptionRefused, Wanted, subscribe, tidy_notices

from .stage import ALICE, JOB, Stage
from .subscribed import OK, Receiver, deliver, receiver, telling, unix_now
from .test_notices_outbox import flag
from .wire import WireServer, reply, wire_server

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def engine(stage: Stage) -> Any:
    stage.engine = telling(stage, timeout_s=1.5)
    stage.clock.freeze()
    return stage.engine


@pytest.fixture
def listening(engine: Any) -> Iterator[Callable[..., Receiver]]:
    with ExitStack() as stack:
        yield lambda behaviour=None, **more: stack.enter_context(
            receiver(engine, behaviour, **more)
        )


def tries(listener: Receiver) -> list[DeliveryTry]:
    return list(
        DeliveryTry.objects.filter(delivery__subscription=listener.subscription).order_by("pk")
    )


def make_unknown_then_succeed(stage: Stage, order: str = "4417") -> str:
    """An operation with two notices; its id."""
    from operations.services.looking_up import look_up

    stage.control.fault("500", when="after")
    operation = stage.ask(stage.payment(), order_id=order)
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    return str(operation.pk)


# --- What arrives ---------------------------------------------------------------------------------


def test_a_notice_is_posted_signed_and_written_down(
    stage: Stage, engine: Any, listening: Any
) -> None:
    listener = listening(lambda server: server.answers(reply(200, b"thank you")))
    operation = stage.ask(stage.payment())
    assert deliver(engine) == 1
    (request,) = listener.server.requests
    assert request.line == "POST /hook HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == listener.server.url.removeprefix("http://")
    assert request.headers["webhook-id"] == listener.deliveries()[0].message_id
    assert "." not in request.headers["webhook-id"]
    assert abs(int(request.headers["webhook-timestamp"]) - unix_now()) < 60
    assert listener.signed_with(listener.subscription.secret)
    assert listener.told == [("refund.succeeded", str(operation.pk))]
    (attempt,) = tries(listener)
    assert (attempt.http_status, attempt.body, attempt.error) == (200, "thank you", "")
    assert attempt.duration_ms is not None
    assert listener.state_of_all() == ["delivered"]
    assert deliver(engine) == 0


def test_while_a_secret_rolls_both_sign(stage: Stage, engine: Any, listening: Any) -> None:
    listener = listening()
    old = listener.subscription.secret
    subscribing.roll_secret(
        engine=engine, subscription_id=listener.subscription.pk, actor=ALICE, keep_old_s=3_600
    )
    new = listener.reload().secret
    stage.ask(stage.payment(), order_id="1")
    deliver(engine)
    assert old != new
    assert listener.signed_with(new)
    assert listener.signed_with(old)

    stage.clock.advance(3_601)
    stage.ask(stage.payment(), order_id="2")
    deliver(engine)
    assert listener.signed_with(new)
    assert not listener.signed_with(old)
    tidy_notices(engine=engine)
    assert listener.reload().previous_secret == ""


def test_a_leaked_secret_ends_at_once(stage: Stage, engine: Any, listening: Any) -> None:
    listener = listening()
    old = listener.subscription.secret
    subscribing.roll_secret(
        engine=engine, subscription_id=listener.subscription.pk, actor=ALICE, keep_old_s=0
    )
    stage.ask(stage.payment())
    deliver(engine)
    assert not listener.signed_with(old)
    assert listener.signed_with(listener.reload().secret)


# --- What goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (lambda server: server.closes(after_reading=True), "ended before an answer came"),
        (lambda server: server.closes(after_reading=True, reset=True), "ended before an answer"),
        (lambda server: server.stalls(), "No answer came in time"),
        (lambda server: server.drips(b"HTTP/1.1 200 OK\r\nX-Slow: "), "in time"),
        (lambda server: server.says(b"nothing like HTTP\r\n\r\n"), "ended before an answer came"),
    ],
    ids=["drop", "reset", "hang", "drip", "noise"],
)
def test_a_try_without_an_answer_is_repeated_under_its_id(
    stage: Stage, engine: Any, listening: Any, behaviour: Any, error: str
) -> None:
    healed = threading.Event()

    def first_wrong(server: WireServer) -> Any:
        wrong, right = behaviour(server), server.answers(OK)
        return lambda sock: (right if healed.is_set() else wrong)(sock)

    listener = listening(first_wrong)
    stage.ask(stage.payment())
    began = time.monotonic()
    assert deliver(engine) == 1
    assert time.monotonic() - began < 5
    assert listener.state_of_all() == ["waiting"]
    assert error in tries(listener)[0].error
    assert deliver(engine) == 0

    healed.set()
    stage.clock.advance(6)
    assert deliver(engine) == 1
    assert listener.state_of_all() == ["delivered"]
    assert len(set(listener.ids)) == 1


@pytest.mark.parametrize("status", [400, 503])
def test_every_answer_but_a_2xx_is_a_failure(
    stage: Stage, engine: Any, listening: Any, status: int
) -> None:
    listener = listening(lambda server: server.answers(reply(status, b"no")))
    stage.ask(stage.payment())
    deliver(engine)
    assert (listener.state_of_all(), tries(listener)[0].http_status) == (["waiting"], status)


def test_a_redirect_is_not_followed(stage: Stage, engine: Any, listening: Any) -> None:
    elsewhere = listening()
    there = {"Location": elsewhere.server.url + "/hook"}
    subscribing.disable(engine=engine, subscription_id=elsewhere.subscription.pk, actor=ALICE)
    listener = listening(lambda server: server.answers(reply(307, b"", headers=there)))
    stage.ask(stage.payment())
    deliver(engine)
    assert "Redirects are not followed" in tries(listener)[0].error
    assert elsewhere.server.connections == 0


def test_an_answer_that_never_ends_counts_by_its_status(
    stage: Stage, engine: Any, listening: Any
) -> None:
    flood = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    listener = listening(lambda server: server.floods(flood))
    stage.ask(stage.payment())
    deliver(engine)
    assert listener.state_of_all() == ["delivered"]


def test_retries_go_on_for_days_and_then_the_receiver_is_disabled(
    stage: Stage, engine: Any, listening: Any
) -> None:
    listener = listening(lambda server: server.answers(reply(500, b"broken")))
    stage.ask(stage.payment())
    began = stage.clock()
    while listener.reload().disabled_at is None:
        assert deliver(engine) == 1
        (row,) = listener.deliveries()
        stage.clock.advance((row.next_try_at - stage.clock()).total_seconds())
    assert (stage.clock() - began).total_seconds() > 3 * 86_400
    assert len(set(listener.ids)) == 1
    assert len(listener.ids) == 10
    assert "3 days" in listener.reload().disabled_reason
    entry = AuditEntry.objects.get(action="subscription_disabled")
    assert entry.actor_name == "Notices"
    assert deliver(engine) == 0


def test_what_waited_goes_out_when_it_is_enabled_again(
    stage: Stage, engine: Any, listening: Any
) -> None:
    gone = threading.Event()
    gone.set()
    listener = listening(
        lambda server: lambda sock: server.answers(reply(410) if gone.is_set() else OK)(sock)
    )
    stage.ask(stage.payment())
    deliver(engine)
    assert listener.reload().disabled_reason == "The receiver answered 410 Gone."
    assert deliver(engine) == 0
    stage.clock.advance(86_400)
    assert deliver(engine) == 0
    gone.clear()
    subscribing.enable(engine=engine, subscription_id=listener.subscription.pk, actor=ALICE)
    assert deliver(engine) == 1
    assert listener.state_of_all() == ["delivered"]


def test_one_notice_that_is_never_taken_does_not_disable_a_receiver_that_is_well(
    stage: Stage, engine: Any, listening: Any
) -> None:
    poison: list[str] = []

    def choose(server: WireServer) -> Any:
        def behave(sock: Any) -> None:
            request = server.read(sock)
            bad = request is not None and any(text in request.body for text in poison)
            sock.sendall(reply(500) if bad else OK)

        return behave

    listener = listening(choose)
    first = stage.ask(stage.payment(), order_id="poison")
    poison.append(str(first.pk))
    for day in range(12):
        deliver(engine)
        stage.ask(stage.payment(), order_id=f"good-{day}")
        deliver(engine)
        (row, *_) = listener.deliveries()
        stage.clock.advance(max(10, (row.next_try_at - stage.clock()).total_seconds()))
    assert listener.reload().disabled_at is None
    states = listener.state_of_all()
    assert states[0] == "failed"
    assert set(states[1:]) == {"delivered"}


def test_a_receiver_that_asks_for_time_gets_it(stage: Stage, engine: Any, listening: Any) -> None:
    busy = reply(429, b"", headers={"Retry-After": "120"})
    listener = listening(lambda server: server.answers(busy, OK))
    stage.ask(stage.payment(), order_id="1")
    deliver(engine)
    stage.ask(stage.payment(), order_id="2")
    stage.clock.advance(100)
    assert deliver(engine) == 0
    stage.clock.advance(21)
    assert deliver(engine) == 2
    assert listener.state_of_all() == ["delivered", "delivered"]


# --- Order ----------------------------------------------------------------------------------------


def test_a_later_notice_waits_for_the_earlier_and_for_no_other_operation(
    stage: Stage, engine: Any, listening: Any
) -> None:
    blocked: list[str] = []

    def choose(server: WireServer) -> Any:
        def behave(sock: Any) -> None:
            request = server.read(sock)
            bad = request is not None and any(text in request.body for text in blocked)
            sock.sendall(reply(500) if bad else OK)

        return behave

    listener = listening(choose)
    first = make_unknown_then_succeed(stage, "first")
    second = make_unknown_then_succeed(stage, "second")
    blocked.append(first)
    deliver(engine)
    assert [kind for kind, operation in listener.told if operation == first] == ["refund.unknown"]
    assert [kind for kind, operation in listener.told if operation == second] == [
        "refund.unknown",
        "refund.succeeded",
    ]
    blocked.clear()
    stage.clock.advance(6)
    deliver(engine)
    assert [kind for kind, operation in listener.told if operation == first] == [
        "refund.unknown",
        "refund.unknown",
        "refund.succeeded",
    ]


def test_a_receiver_that_hangs_holds_up_no_other(stage: Stage, engine: Any, listening: Any) -> None:
    dead = listening(lambda server: server.stalls())
    well = listening()
    arrived: list[float] = []
    for order in range(8):
        stage.ask(stage.payment(), order_id=str(order))
    began = time.monotonic()
    watcher = threading.Thread(target=_when_full, args=(well, 8, arrived), daemon=True)
    watcher.start()
    deliver(engine)
    watcher.join(5)
    assert arrived
    assert arrived[0] - began < 1.2
    assert well.state_of_all() == ["delivered"] * 8
    assert set(dead.state_of_all()) == {"waiting"}
    # In trouble it gets one try at a time, and rests in between.
    assert len(dead.server.requests) <= 8


def _when_full(listener: Receiver, count: int, arrived: list[float]) -> None:
    for _ in range(500):
        if len(listener.server.requests) >= count:
            arrived.append(time.monotonic())
            return
        time.sleep(0.01)


def test_a_receiver_in_trouble_gets_one_try_at_a_time(
    stage: Stage, engine: Any, listening: Any
) -> None:
    listener = listening(lambda server: server.answers(reply(500)))
    for order in range(12):
        stage.ask(stage.payment(), order_id=str(order))
    deliver(engine)
    made = len(listener.server.requests)
    assert made < 12
    assert deliver(engine) == 0
    stage.clock.advance(301)
    assert deliver(engine) == 1


# --- Death ----------------------------------------------------------------------------------------


def test_a_worker_killed_in_the_middle_repeats_under_the_same_id(
    stage: Stage, listening: Any, process_env: dict[str, str], engine: Any
) -> None:
    served = threading.Event()
    listener = listening(
        lambda server: (
            lambda sock: server.answers(OK)(sock) if served.is_set() else server.stalls()(sock)
        )
    )
    stage.ask(stage.payment())
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.relay"], cwd=ROOT, env=process_env
    )
    for _ in range(3_000):
        if listener.server.requests:
            break
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(listener.server.requests) == 1
    (row,) = listener.deliveries()
    assert row.claimed_until is not None
    assert deliver(engine) == 0

    served.set()
    stage.clock.advance(120)
    assert deliver(engine) == 1
    assert listener.ids == [row.message_id, row.message_id]
    lost, made = tries(listener)
    assert (lost.number, lost.finished_at) == (1, None)
    assert (made.number, made.http_status) == (2, 204)
    assert listener.state_of_all() == ["delivered"]


def test_two_relays_never_hold_one_delivery(stage: Stage, engine: Any, listening: Any) -> None:
    listening()
    for order in range(3):
        stage.ask(stage.payment(), order_id=str(order))
    assert len(claim_due(engine=engine, most=16)) == 3
    assert claim_due(engine=engine, most=16) == []
    assert not notices_wait(engine=engine)


def test_an_answer_that_came_after_the_claim_ran_out_still_counts(
    stage: Stage, engine: Any, listening: Any
) -> None:
    listener = listening()
    stage.ask(stage.payment())

    def slow(**given: Any) -> Any:
        stage.clock.advance(600)
        claims.extend(claim_due(engine=engine, most=16))
        connection.close()
        return post(**given)

    claims: list[Any] = []
    deliver_due(engine=engine, post=slow)
    assert [claim.message_id for claim in claims] == listener.ids
    assert listener.state_of_all() == ["delivered"]


def test_nothing_is_posted_inside_a_transaction(engine: Any) -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="inside a transaction"):
        deliver(engine)


# --- Send again, and the end of a delivery --------------------------------------------------------


def test_send_again_repeats_under_the_same_id_and_is_audited(
    stage: Stage, engine: Any, listening: Any
) -> None:
    listener = listening()
    stage.ask(stage.payment())
    deliver(engine)
    (row,) = listener.deliveries()
    subscribing.send_again(engine=engine, delivery_id=row.pk, actor=ALICE)
    assert deliver(engine) == 1
    assert listener.ids == [row.message_id] * 2
    assert listener.server.requests[0].body == listener.server.requests[1].body
    entry = AuditEntry.objects.get(action="notice_sent_again")
    assert (entry.actor_name, entry.actor_address) == ("Alice", "127.0.0.1")
    assert entry.after["message"] == row.message_id


def test_send_again_tries_what_waits_now(stage: Stage, engine: Any, listening: Any) -> None:
    listener = listening(lambda server: server.answers(reply(500), OK))
    stage.ask(stage.payment())
    deliver(engine)
    assert deliver(engine) == 0
    (row,) = listener.deliveries()
    subscribing.send_again(engine=engine, delivery_id=row.pk, actor=ALICE)
    assert deliver(engine) == 1


def test_nothing_is_sent_again_to_a_disabled_subscription(
    stage: Stage, engine: Any, listening: Any
) -> None:
    listener = listening()
    stage.ask(stage.payment())
    deliver(engine)
    subscribing.disable(engine=engine, subscription_id=listener.subscription.pk, actor=ALICE)
    (row,) = listener.deliveries()
    with pytest.raises(SubscriptionRefused, match="disabled"):
        subscribing.send_again(engine=engine, delivery_id=row.pk, actor=ALICE)
    assert listener.state_of_all() == ["delivered"]


def test_delivered_notices_are_removed_after_their_time(
    stage: Stage, engine: Any, listening: Any
) -> None:
    listener = listening()
    stage.ask(stage.payment())
    deliver(engine)
    stage.clock.advance(29 * 86_400)
    tidy_notices(engine=engine)
    assert Delivery.objects.count() == 1
    stage.clock.advance(2 * 86_400)
    with transaction.atomic():
        operation = listener.deliveries()[0].operation
        flag(stage, operation, Attention.DISPUTED)
    tidy_notices(engine=engine)
    assert [row.state for row in listener.deliveries()] == [DeliveryState.WAITING]
    assert DeliveryTry.objects.count() == 0


# --- Where nothing may go -------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/hook", "https://localhost/hook"])
def test_a_private_address_is_refused_at_creation(stage: Stage, address: str) -> None:
    with pytest.raises(SubscriptionRefused, match="not a public address") as refusal:
        subscribe(engine=stage.engine, wanted=Wanted(address=address), actor=ALICE)
    assert refusal.value.field == "address"
    assert not Subscription.objects.exists()


def test_a_name_that_turns_private_is_refused_at_delivery(
    stage: Stage, engine: Any, listening: Any
) -> None:
    listener = listening()
    stage.ask(stage.payment())
    strict = telling(stage, allow_networks=())
    assert deliver(strict) == 1
    assert listener.server.connections == 0
    assert "not a public address" in tries(listener)[0].error
    assert listener.state_of_all() == ["waiting"]


def test_the_connection_goes_to_the_address_that_was_checked(stage: Stage, engine: Any) -> None:
    """A name that nobody else could resolve: only the checked IP address is used."""
    asked = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    with wire_server(lambda server: server.answers(OK)) as server:
        port = server.url.rpartition(":")[2]
        told = post(
            address=f"http://receiver.invalid:{port}/hook",
            body="{}",
            headers={},
            policy=engine.notices,
            resolve=rebinding,
        )
        assert told.http_status == 204
        assert server.requests[0].headers["host"] == f"receiver.invalid:{port}"
    assert asked == ["receiver.invalid"]


def test_nothing_is_sent_once_resolving_the_name_took_all_the_time(engine: Any) -> None:
    def slow(host: str, port: int) -> list[str]:
        time.sleep(0.3)
        return ["127.0.0.1"]

    with wire_server(lambda server: server.answers(OK)) as server:
        told = post(
            address=server.url,
            body="{}",
            headers={},
            policy=replace(engine.notices, timeout_s=0.2),
            resolve=slow,
        )
        assert told.error == "Not sent: the address was not resolved in time."
        assert server.connections == 0


def test_one_private_address_among_several_is_one_too_many(engine: Any) -> None:
    told = post(
        address="https://receiver.invalid/hook",
        body="{}",
        headers={},
        policy=engine.notices,
        resolve=lambda host, port: ["93.184.216.34", "10.0.0.1"],
    )
    assert told.http_status is None
    assert "10.0.0.1" in told.error


def test_a_certificate_that_nobody_trusts_is_refused(stage: Stage, engine: Any) -> None:
    with wire_server(lambda server: server.answers(OK), tls=True) as server:
        told = post(address=server.url, body="{}", headers={}, policy=engine.notices)
        assert told.http_status is None
        assert "not trusted" in told.error
        assert server.requests == []
