"""The lesser contracts: each breaks exactly the promise that it is named after."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import stripe

from operations.sandbox import CONTRACTS, NoSuchContractError, Sandbox

from .conftest import SECRET, Receiver, is_replay, wait_until

Connect = Callable[..., stripe.StripeClient]
DAY_S = 86_400


@pytest.fixture
def contract() -> str:
    return "stripe"


@pytest.fixture
def sandbox(contract: str) -> Iterator[Sandbox]:
    with Sandbox(webhook_secret=SECRET, webhook_base_delay_s=0.02, contract=contract) as running:
        yield running


def refund(sandbox: Sandbox, connect: Connect, charge: str, key: str = "k") -> stripe.Refund:
    return connect(sandbox).v1.refunds.create(
        {"charge": charge, "amount": 100}, {"idempotency_key": key}
    )


def new_charge(sandbox: Sandbox) -> str:
    return str(sandbox.control.payment(amount=10_000)["charge"])


def listed(sandbox: Sandbox, connect: Connect, charge: str) -> list[str]:
    return [row.id for row in connect(sandbox).v1.refunds.list({"charge": charge}).data]


@pytest.mark.parametrize("contract", ["no_keys"])
def test_without_keys_every_post_makes_a_refund(sandbox: Sandbox, connect: Connect) -> None:
    charge = new_charge(sandbox)
    first, second = refund(sandbox, connect, charge), refund(sandbox, connect, charge)
    assert first.id != second.id
    assert (is_replay(first), is_replay(second)) == (False, False)
    assert sandbox.control.counts()["refunds"] == 2


@pytest.mark.parametrize("contract", ["no_keys"])
def test_without_keys_a_key_that_is_too_long_is_not_even_looked_at(
    sandbox: Sandbox, connect: Connect
) -> None:
    assert refund(sandbox, connect, new_charge(sandbox), key="k" * 300).id


@pytest.mark.parametrize("contract", ["success_only"])
def test_saved_success_is_given_again(sandbox: Sandbox, connect: Connect) -> None:
    charge = new_charge(sandbox)
    first, second = refund(sandbox, connect, charge), refund(sandbox, connect, charge)
    assert (first.id, is_replay(second)) == (second.id, True)
    assert sandbox.control.counts()["refunds"] == 1


@pytest.mark.parametrize("contract", ["success_only"])
def test_answer_that_is_no_success_is_not_saved_although_the_refund_was_made(
    sandbox: Sandbox, connect: Connect
) -> None:
    charge = new_charge(sandbox)
    sandbox.control.fault("500", when="after")
    with pytest.raises(stripe.APIError):
        refund(sandbox, connect, charge)
    assert not is_replay(refund(sandbox, connect, charge))
    assert sandbox.control.counts()["refunds"] == 2


@pytest.mark.parametrize(("contract", "remembers"), [("stripe", False), ("unstated_window", True)])
def test_clock_alone_does_not_say_when_an_unstated_window_ends(
    sandbox: Sandbox, connect: Connect, remembers: bool
) -> None:
    charge = new_charge(sandbox)
    refund(sandbox, connect, charge)
    sandbox.control.advance_clock(30 * DAY_S)
    assert is_replay(refund(sandbox, connect, charge)) == remembers


@pytest.mark.parametrize("contract", ["unstated_window"])
def test_unstated_window_ends_when_the_sandbox_chooses(sandbox: Sandbox, connect: Connect) -> None:
    charge = new_charge(sandbox)
    refund(sandbox, connect, charge)
    assert sandbox.control.expire_keys() == 1
    assert not is_replay(refund(sandbox, connect, charge))
    assert sandbox.control.counts()["refunds"] == 2


@pytest.mark.parametrize("contract", ["received_only"])
def test_refund_is_only_received_until_a_webhook_tells_its_end(
    sandbox: Sandbox, connect: Connect, receiver: Receiver
) -> None:
    sandbox.control.webhook_url(receiver.url)
    charge = new_charge(sandbox)
    other = refund(sandbox, connect, new_charge(sandbox), key="other")
    made = refund(sandbox, connect, charge)
    assert made.status == "received"

    assert sandbox.control.finish_refunds(payment=charge) == 1
    wait_until(lambda: "refund.updated" in receiver.types())

    read = connect(sandbox).v1.refunds.retrieve
    assert (read(made.id).status, read(other.id).status) == ("succeeded", "received")
    updated = [event for event in receiver.events() if event.type == "refund.updated"]
    assert [event.data.object["status"] for event in updated] == ["succeeded"]
    assert sandbox.control.finish_refunds("failed") == 1
    assert sandbox.control.finish_refunds() == 0


@pytest.mark.parametrize("contract", ["never_conclusive"])
def test_refund_made_over_the_api_never_shows_in_a_list(sandbox: Sandbox, connect: Connect) -> None:
    charge = new_charge(sandbox)
    made = refund(sandbox, connect, charge)
    outside = sandbox.control.refund_outside(charge, amount=200)
    sandbox.control.advance_clock(30 * DAY_S)
    assert listed(sandbox, connect, charge) == [outside]
    assert connect(sandbox).v1.refunds.retrieve(made.id).status == "succeeded"
    assert sandbox.control.counts()["refunds"] == 2


def test_contract_nobody_knows_is_refused_with_the_known_ones() -> None:
    with pytest.raises(NoSuchContractError, match="never_conclusive"):
        Sandbox(contract="generous")


def test_command_line_takes_every_contract_and_no_other() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "operations.sandbox", "--contract", "generous"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 2
    assert all(name in said.stderr for name in CONTRACTS)


def test_log_of_sends_says_when_each_began_and_ended(sandbox: Sandbox, connect: Connect) -> None:
    sandbox.control.fault("slow", seconds=0.05)
    refund(sandbox, connect, new_charge(sandbox))
    (send,) = sandbox.control.sends()
    assert send["ended"] - send["time"] >= 0.05
