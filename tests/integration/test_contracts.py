"""The four faults under each contract: an answer lost, a crash, many at once, a key gone stale.

What is right differs with what the provider promises; that there is never a second refund does not.
"""

import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from operations.domain.statuses import Status, UnknownReason
from operations.models import Attempt, Operation
from operations.providers.contracts import SPOKEN_TO_LIKE_STRIPE
from operations.sandbox import CONTRACTS
from operations.services.looking_up import LookupResult

from .contract_stage import ContractStage, stage_under
from .stage import PART, AtOnce

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.parametrize("contract", SPOKEN_TO_LIKE_STRIPE),
]

StartSender = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def stage(contract: str, transactional_db: None) -> Iterator[ContractStage]:
    with stage_under(contract) as found:
        yield found


def assert_one_refund(stage: ContractStage, payment: str, *, sends: int) -> None:
    """The provider's word on it."""
    assert (stage.refunds(payment), stage.refunded(payment)) == (1, PART)
    assert stage.sends(payment) == sends


def assert_found_by_a_look_up(stage: ContractStage, operation: Operation) -> None:
    """A look-up settles it where lists show every refund; else it goes on being unknown."""
    sends = stage.sends(operation.payment.charge)
    expected = (
        (LookupResult.FOUND, stage.made)
        if stage.lists_show_it
        else (LookupResult.ABSENT, Status.UNKNOWN)
    )
    assert stage.look(operation) == expected
    assert_one_refund(stage, operation.payment.charge, sends=sends)


def assert_comes_to_its_end(stage: ContractStage, payment: str) -> None:
    """What was only received ends by a webhook, without a send."""
    if stage.made == Status.PROCESSING:
        sends = stage.sends(payment)
        stage.finish_by_webhook(payment)
        assert stage.sends(payment) == sends
    assert Operation.objects.get().status == Status.SUCCEEDED


def test_sandbox_and_product_know_the_same_contracts(stage: ContractStage, contract: str) -> None:
    assert list(SPOKEN_TO_LIKE_STRIPE) == list(CONTRACTS)
    payment = stage.payment()

    assert stage.ask(payment).status == stage.made

    assert_one_refund(stage, payment, sends=1)
    assert_comes_to_its_end(stage, payment)


# --- An answer is lost -------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [{"kind": "drop"}, {"kind": "503"}, {"kind": "empty_object"}])
def test_lost_answer_is_one_refund(
    stage: ContractStage, contract: str, fault: dict[str, str]
) -> None:
    payment = stage.payment()
    stage.control.fault(fault["kind"], when="after")

    operation = stage.ask(payment)

    if stage.resends:
        assert operation.status == stage.made
        assert_one_refund(stage, payment, sends=2)
        assert stage.keys(payment) == {operation.idempotency_key}
    else:
        assert_one_refund(stage, payment, sends=1)
        stage.assert_waits_for_a_person(UnknownReason.KEY_RETENTION_UNCLEAR)
        assert_found_by_a_look_up(stage, operation)
    assert_comes_to_its_end(stage, payment)


def test_request_that_was_lost_is_sent_again_only_where_the_key_allows_it(
    stage: ContractStage, contract: str
) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="before")

    operation = stage.ask(payment)

    if stage.resends:
        assert operation.status == stage.made
        assert_one_refund(stage, payment, sends=2)
    else:
        stage.assert_waits_for_a_person(UnknownReason.KEY_RETENTION_UNCLEAR)
        for _ in range(3):
            stage.clock.advance(3_600)
            assert stage.look(operation) == (LookupResult.ABSENT, Status.UNKNOWN)
        assert (stage.refunds(payment), stage.sends(payment)) == (0, 1)


@pytest.mark.parametrize("when", ["before", "after"])
def test_500_is_never_followed_by_a_send(stage: ContractStage, contract: str, when: str) -> None:
    payment = stage.payment()
    stage.control.fault("500", when=when)

    stage.ask(payment)

    stage.assert_waits_for_a_person(
        UnknownReason.SERVER_ERROR
        if 500 in stage.contract.frozen_statuses
        else UnknownReason.KEY_RETENTION_UNCLEAR
    )
    assert (stage.refunds(payment), stage.sends(payment)) == (int(when == "after"), 1)


def test_call_that_was_turned_away_is_sent_again_under_every_contract(
    stage: ContractStage, contract: str
) -> None:
    payment = stage.payment()
    stage.control.fault("429", times=2)

    assert stage.ask(payment).status == stage.made

    assert_one_refund(stage, payment, sends=3)


# --- A crash -----------------------------------------------------------------------------------


def test_process_killed_while_sending_leaves_one_refund(
    stage: ContractStage, contract: str, start_sender: StartSender
) -> None:
    payment = stage.payment()
    stage.control.fault("hang", when="after", seconds=60)
    process = start_sender(payment)
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    stage.control.wait_in_flight(timeout_s=20)
    process.kill()
    assert process.wait(10) == -signal.SIGKILL
    assert_one_refund(stage, payment, sends=1)

    stage.clock.advance(40)
    stage.sweep(0)
    if not stage.resends:
        stage.assert_waits_for_a_person(UnknownReason.INTERRUPTED)
    for _ in range(3):
        stage.sweep(60)

    assert Attempt.objects.order_by("number")[0].doubt == "interrupted"
    assert Operation.objects.get().status == stage.made
    # Only where lists hide the refund does it take the key to find it.
    assert_one_refund(stage, payment, sends=1 if stage.lists_show_it else 2)
    assert_comes_to_its_end(stage, payment)


# --- Two at once, then fifty ---------------------------------------------------------------------


@pytest.mark.parametrize("askers", [2, 50])
def test_many_at_once_are_one_send(stage: ContractStage, contract: str, askers: int) -> None:
    payment = stage.payment()
    stage.control.fault("slow", when="after", seconds=60)
    engine = stage.in_real_time()
    asking = AtOnce([partial(stage.ask, payment, engine=engine)] * askers)
    stage.control.wait_in_flight(timeout_s=20)
    asking.wait_for(askers - 1)
    stage.control.let_go()

    told = Counter(
        str(result.status) if isinstance(result, Operation) else type(result).__name__
        for result in asking.results()
    )

    assert told == {"InProgress": askers - 1, str(stage.made): 1}
    assert_one_refund(stage, payment, sends=1)
    assert stage.ask(payment).status == stage.made
    assert_one_refund(stage, payment, sends=1)


# --- The key can't be relied on any more ---------------------------------------------------------


def test_key_gone_stale_is_never_sent_again(stage: ContractStage, contract: str) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=3)
    operation = stage.ask(payment)
    sends = 3 if stage.resends else 1
    assert_one_refund(stage, payment, sends=sends)

    # From now on the same key would make a second refund, whatever the contract said of it.
    stage.control.expire_keys()
    stage.clock.advance(86_400)
    stage.ask(payment)

    stage.assert_waits_for_a_person(
        UnknownReason.KEY_WINDOW_CLOSED if stage.resends else UnknownReason.KEY_RETENTION_UNCLEAR
    )
    assert_found_by_a_look_up(stage, operation)
    if stage.lists_show_it:
        assert_comes_to_its_end(stage, payment)
    assert_one_refund(stage, payment, sends=sends)
