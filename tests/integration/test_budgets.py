"""How often and how long anything is tried, counted by the one who was asked."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from operations.domain.key_window import KeyWindowPolicy
from operations.domain.statuses import Status, UnknownReason
from operations.models import Operation
from operations.queries.answers import answer
from operations.services.requesting import PaymentUnreadable

from .recorded import Recorded, recorded_provider
from .stage import MovingClock, Stage, engine_for, split_opener
from .wire_provider import error_body

pytestmark = pytest.mark.django_db(transaction=True)

DOCS = Path(__file__).parents[2] / "docs"
WINDOW_S = 86_400


class StandingClock(MovingClock):
    """Stands still but for sleeping and being moved, however slow the machine is."""

    def __init__(self) -> None:
        super().__init__()
        self._started = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self._started + self.offset


@pytest.fixture
def stage(stage: Stage) -> Stage:
    clock = StandingClock()
    engine = replace(stage.engine, clock=clock, sleep=clock.sleep)
    return Stage(sandbox=stage.sandbox, clock=clock, engine=engine)


# --- What the provider asks for ------------------------------------------------------------------


def test_pause_that_ends_after_the_calls_deadline_is_postponed_and_told(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("429", retry_after_s=120)

    operation = stage.ask(payment)

    assert (operation.status, stage.sends(payment)) == (Status.OPEN, 1)
    code, body = answer(operation, now=stage.clock())
    assert (code, body["status"]) == (202, "unconfirmed")
    assert body["retry_after_s"] == 120
    assert sum(stage.clock.slept) == 0

    for _ in range(3):
        assert stage.ask(payment).status == Status.OPEN
    assert stage.sends(payment) == 1

    stage.clock.advance(121)
    assert stage.ask(payment).status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 2)


def test_pause_that_ends_after_the_key_window_is_not_waited_for(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("429", retry_after_s=WINDOW_S)

    operation = stage.ask(payment)

    assert operation.unknown_reason == UnknownReason.KEY_WINDOW_CLOSED
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 1)


def told_to(word: str, status: int = 503) -> Recorded:
    return status, {"Stripe-Should-Retry": word}, error_body("api_error")


@pytest.mark.parametrize(
    ("answers", "sends", "status"),
    [
        ([told_to("false")], 1, Status.UNKNOWN),
        ([told_to("true"), told_to("false")], 2, Status.UNKNOWN),
        ([told_to("true")], 3, Status.OPEN),
        ([told_to("true", 500)], 1, Status.UNKNOWN),
    ],
)
def test_word_of_the_provider_stops_sending_or_lets_it_go_on(
    stage: Stage, answers: Sequence[Recorded], sends: int, status: Status
) -> None:
    payment = stage.payment()
    with recorded_provider(sends=answers) as provider:
        engine = replace(
            stage.engine,
            open_provider=split_opener(reads=stage.sandbox.url, sends=provider.url),
        )
        operation = stage.ask(payment, engine=engine)

    assert (len(provider.seen("POST")), operation.status) == (sends, status)


# --- Our own budgets -----------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_pause_is_any_share_of_a_doubled_base(stage: Stage, share: float) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=20)
    budget = replace(stage.engine.budget, attempts_per_call=4)

    stage.ask(payment, engine=replace(stage.engine, budget=budget, jitter=lambda: share))

    assert stage.sends(payment) == 4
    pauses = [seconds for seconds in stage.clock.slept if seconds > 0]
    wanted = [base * share for base in (0.5, 1.0, 2.0)] if share else []
    assert pauses == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("per_call", "per_operation", "sends_by_call"),
    [(1, 1, [1, 1]), (2, 3, [2, 3, 3]), (3, 6, [3, 6, 6]), (5, 4, [4, 4])],
)
def test_attempts_of_a_call_and_of_an_operation_are_never_passed(
    stage: Stage, per_call: int, per_operation: int, sends_by_call: list[int]
) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=50)
    budget = replace(
        stage.engine.budget,
        attempts_per_call=per_call,
        attempts_per_operation=per_operation,
    )
    engine = replace(stage.engine, budget=budget)

    for sends in sends_by_call:
        operation = stage.ask(payment, engine=engine)
        assert stage.sends(payment) == operation.attempts_made == sends

    assert operation.unknown_reason == UnknownReason.BUDGET_SPENT
    assert (stage.refunds(payment), len(stage.keys(payment))) == (1, 1)


@pytest.mark.parametrize(("deadline_s", "sends"), [(6.9, 1), (7.0, 1), (7.5, 2), (30.0, 3)])
def test_no_send_begins_that_could_end_after_the_calls_deadline(
    stage: Stage, deadline_s: float, sends: int
) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=50)
    first = replace(stage.engine.budget, attempts_per_call=1)
    stage.ask(payment, engine=replace(stage.engine, budget=first))
    stage.clock.advance(60)
    budget = replace(stage.engine.budget, call_deadline_s=deadline_s)

    stage.ask(payment, engine=replace(stage.engine, budget=budget))

    # A deadline shorter than one send leaves room for the one that starts with the call.
    assert stage.sends(payment) == 1 + sends


@pytest.mark.parametrize(("window_s", "margin_s"), [(86_400, 900), (3_600, 0), (600, 60)])
def test_key_window_ends_the_sending_a_margin_before_its_end(
    stage: Stage, window_s: int, margin_s: int
) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=50)
    once = replace(stage.engine.budget, attempts_per_call=1)
    policy = KeyWindowPolicy(window_s=window_s, margin_s=margin_s)
    engine = replace(stage.engine, budget=once, key_window=policy)
    stage.ask(payment, engine=engine)

    stage.clock.advance(window_s - margin_s - 30)
    assert stage.ask(payment, engine=engine).status == Status.OPEN
    assert stage.sends(payment) == 2

    stage.clock.advance(30)
    assert stage.ask(payment, engine=engine).unknown_reason == UnknownReason.KEY_WINDOW_CLOSED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 2)


# --- Clocks that are wrong ------------------------------------------------------------------------


@pytest.mark.parametrize(("first_min", "second_min"), [(0, 0), (5, -5), (-5, 5), (5, 5), (-5, -5)])
def test_wrong_clocks_of_two_hosts_open_no_send_after_the_true_window(
    stage: Stage, first_min: int, second_min: int
) -> None:
    hosts = [MovingClock(timedelta(minutes=first_min)), MovingClock(timedelta(minutes=second_min))]
    engines = [
        replace(
            engine_for(stage.sandbox.url, clock),
            budget=replace(stage.engine.budget, attempts_per_call=1, attempts_per_operation=1_000),
        )
        for clock in hosts
    ]
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=1_000)
    stage.ask(payment, engine=engines[0])
    passed = 0.0

    def let_pass(until_s: float) -> None:
        nonlocal passed
        stage.control.advance_clock(until_s - passed)
        for clock in hosts:
            clock.advance(until_s - passed)
        passed = until_s

    for true_s in range(WINDOW_S - 1_860, WINDOW_S + 900, 180):
        let_pass(true_s)
        stage.ask(payment, engine=engines[true_s // 180 % 2])

    sends = stage.control.sends(payment=payment)
    ages = [send["time"] - sends[0]["time"] for send in sends]
    assert {send["outcome"] for send in sends[1:]} == {"replayed"}
    assert WINDOW_S - 1_860 <= ages[-1] < WINDOW_S
    assert stage.refunds(payment) == 1
    assert Operation.objects.get().unknown_reason == UnknownReason.KEY_WINDOW_CLOSED


# --- Reads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", ["charges.retrieve", "refunds.list"])
@pytest.mark.parametrize("kind", ["503", "drop", "429", "empty_body"])
def test_read_is_tried_again_by_a_policy_of_its_own(stage: Stage, endpoint: str, kind: str) -> None:
    payment = stage.payment()
    stage.control.fault(kind, endpoint=endpoint, times=2)

    assert stage.ask(payment).status == Status.SUCCEEDED

    assert stage.control.faults() == []
    assert [pause for pause in stage.clock.slept if pause > 0] == pytest.approx([0.1, 0.2])
    assert stage.sends(payment) == 1


def test_read_that_keeps_failing_is_given_up_and_nothing_is_sent(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("503", endpoint="charges.retrieve", times=4)

    with pytest.raises(PaymentUnreadable):
        stage.ask(payment)

    assert len(stage.control.faults()) == 1
    assert (Operation.objects.count(), stage.sends(payment)) == (0, 0)


def test_read_that_is_refused_is_not_asked_again(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("401", endpoint="charges.retrieve", times=2)

    with pytest.raises(PaymentUnreadable):
        stage.ask(payment)

    assert stage.control.faults()[0]["times"] == 1
    assert stage.sends(payment) == 0


# --- The worst case, printed ----------------------------------------------------------------------


def printed(*arguments: str) -> str:
    out = StringIO()
    call_command("show_budget", *arguments, stdout=out)
    return out.getvalue()


def test_worst_case_of_three_by_three_by_three_is_capped_to_one_budget() -> None:
    shown = printed()
    figures = {
        line.rsplit(maxsplit=1)[0].strip(): line.split()[-1]
        for line in shown.splitlines()
        if line.startswith("  ")
    }
    assert figures["= calls to us"] == "9"
    assert figures["= sends if multiplied"] == "27"
    assert figures["sends with this product"] == "6"


def test_one_try_of_every_layer_above_is_one_call() -> None:
    assert "= calls to us               1" in printed("--agent=1", "--workflow=1")


@pytest.mark.parametrize("arguments", [("--agent=0",), ("--workflow=-1",)])
def test_layer_that_never_tries_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="1 or more"):
        printed(*arguments)


def test_printed_worst_case_stands_in_the_documentation() -> None:
    text = (DOCS / "budgets.md").read_text()
    between = text.split("<!-- budget:begin -->")[1].split("<!-- budget:end -->")[0]
    assert between.strip() == f"```text\n{printed().rstrip()}\n```"
