"""Stripe's objects are read without trusting a single field."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.domain.answers import RefundFacts
from operations.providers.storable import storable
from operations.providers.stripe_objects import (
    object_id,
    payment_facts,
    refund_facts,
    refunds_of_charge,
)

REFUND: dict[str, Any] = {
    "id": "re_1",
    "object": "refund",
    "amount": 3_800,
    "currency": "usd",
    "status": "succeeded",
    "charge": "ch_1",
    "payment_intent": "pi_1",
    "created": 1_772_366_400,
    "metadata": {"order": "4417"},
    "failure_reason": None,
}
#: JSON as a hostile or broken server may write it.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=15,
)
#: Objects whose `type` says which of their fields to read.
TYPED = st.fixed_dictionaries({"type": JSON | st.just("card")}, optional={"card": JSON})
ODD_REFUNDS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(REFUND, JSON)
    | {"destination_details": JSON | TYPED, "next_action": JSON | TYPED},
)


def test_a_refund_is_read_whole() -> None:
    assert refund_facts(REFUND) == RefundFacts(
        id="re_1",
        status="succeeded",
        amount=3_800,
        currency="usd",
        charge="ch_1",
        payment_intent="pi_1",
        created=1_772_366_400,
        metadata={"order": "4417"},
    )


def test_the_banks_reference_and_the_end_of_an_action_are_read_where_their_type_says() -> None:
    facts = refund_facts(
        REFUND
        | {
            "destination_details": {"type": "card", "card": {"reference": "74123456789"}},
            "next_action": {
                "type": "display_details",
                "display_details": {"expires_at": 1_798_888_000},
            },
        }
    )
    assert facts is not None
    assert (facts.reference, facts.action_expires_at) == ("74123456789", 1_798_888_000)
    none_yet = refund_facts(
        REFUND | {"destination_details": {"type": "card", "card": {"reference": None}}}
    )
    assert none_yet is not None
    assert (none_yet.reference, none_yet.action_expires_at) == ("", 0)


@pytest.mark.parametrize("metadata", [None, [], {}, "", 0])
def test_metadata_that_is_empty_in_any_way_is_empty(metadata: Any) -> None:
    facts = refund_facts(REFUND | {"metadata": metadata})
    assert facts is not None
    assert facts.metadata == {}


def test_metadata_may_be_absent_and_its_values_are_texts() -> None:
    without = {name: value for name, value in REFUND.items() if name != "metadata"}
    facts = refund_facts(without)
    assert facts is not None
    assert facts.metadata == {}
    odd = refund_facts(REFUND | {"metadata": {"n": 1, "none": None, "t": True}})
    assert odd is not None
    assert odd.metadata == {"n": "1", "t": "True"}


def test_an_expanded_object_is_its_id() -> None:
    facts = refund_facts(
        REFUND | {"charge": {"id": "py_1", "object": "charge"}, "payment_intent": None}
    )
    assert facts is not None
    assert (facts.charge, facts.payment_intent) == ("py_1", "")
    assert object_id({"id": 7}) == object_id([]) == object_id(None) == ""


@pytest.mark.parametrize("amount", [True, False, None, "3800", 38.0, -1, 2**63, [3_800]])
def test_an_amount_that_is_no_amount_makes_no_refund(amount: Any) -> None:
    assert refund_facts(REFUND | {"amount": amount}) is None


@pytest.mark.parametrize("refund_id", ["", None, 7, ["re_1"], "r" * 256])
def test_an_id_that_is_no_id_makes_no_refund(refund_id: Any) -> None:
    assert refund_facts(REFUND | {"id": refund_id}) is None


@pytest.mark.parametrize("body", [None, [], {}, "refund", 7, {"object": "refund"}])
def test_what_is_no_refund_is_none(body: Any) -> None:
    assert refund_facts(body) is None
    assert refund_facts(REFUND | {"object": "charge"}) is None


@pytest.mark.parametrize("created", [True, -1, 2**70, "yesterday", 1.5])
def test_a_time_that_is_no_time_is_zero(created: Any) -> None:
    facts = refund_facts(REFUND | {"created": created})
    assert facts is not None
    assert facts.created == 0


def test_nothing_that_cannot_be_stored_comes_out() -> None:
    facts = refund_facts(
        REFUND
        | {
            "status": "a\x00b",
            "failure_reason": "x" * 5_000,
            "metadata": {"k\x00": "\ud800"},
        }
    )
    assert facts is not None
    assert facts.status == "a\ufffdb"
    assert len(facts.failure_reason) == 500
    assert facts.metadata == {"k\ufffd": "\ufffd"}


@given(body=JSON | ODD_REFUNDS.map(lambda odd: REFUND | odd))
def test_no_json_makes_the_reading_of_a_refund_raise(body: Any) -> None:
    facts = refund_facts(body)
    if facts is not None:
        assert facts.id
        assert 0 <= facts.amount < 2**63
        assert all(
            isinstance(name, str) and isinstance(text, str) for name, text in facts.metadata.items()
        )


@given(charge=st.dictionaries(st.text(max_size=5), JSON), refunds=JSON)
def test_no_json_makes_the_reading_of_a_charge_raise(charge: dict[str, Any], refunds: Any) -> None:
    list(refunds_of_charge(charge | {"refunds": refunds}))


@pytest.mark.parametrize(
    ("refunds", "found"),
    [
        ({"object": "list", "data": [REFUND, {"object": "odd"}]}, 1),
        ([REFUND], 1),
        (None, 0),
        ({"data": None}, 0),
    ],
)
def test_a_charge_carries_its_refunds_in_any_version(refunds: Any, found: int) -> None:
    assert len(list(refunds_of_charge({"refunds": refunds}))) == found


FIELDS = (
    "id amount amount_captured amount_refunded captured currency payment_intent livemode"
    " disputed amount_received"
)


@given(
    charge=st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS.split(), JSON)),
    intent=st.none() | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS.split(), JSON)),
)
def test_no_json_makes_the_reading_of_a_payment_raise(
    charge: dict[str, Any], intent: dict[str, Any] | None
) -> None:
    facts = payment_facts(charge=charge, intent=intent)
    assert 0 <= facts.captured < 2**63
    assert 0 <= facts.refunded < 2**63


def test_a_payment_is_read_from_its_charge_and_its_intent() -> None:
    charge = {
        "id": "ch_1",
        "amount": 9_000,
        "amount_captured": 8_000,
        "amount_refunded": 100,
        "currency": "USD",
        "payment_intent": {"id": "pi_1"},
        "livemode": False,
        "disputed": True,
    }
    facts = payment_facts(charge=charge, intent=None)
    assert (facts.charge, facts.payment_intent) == ("ch_1", "pi_1")
    assert (facts.captured, facts.refunded, facts.currency) == (8_000, 100, "usd")
    assert facts.disputed
    old = {"id": "ch_1", "amount": 9_000, "captured": True}
    assert payment_facts(charge=old, intent=None).captured == 9_000
    assert payment_facts(charge=old | {"captured": False}, intent=None).captured == 0


@given(value=JSON)
def test_whatever_came_can_be_stored(value: Any) -> None:
    import json

    stored = storable(value)
    text = json.dumps(stored, allow_nan=False, ensure_ascii=False)
    text.encode()
    assert "\x00" not in text
    assert "\\u0000" not in text
    assert storable(stored) == stored
