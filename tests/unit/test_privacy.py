"""Of a provider's objects nothing about people and cards is kept, and nothing that opens doors."""

import json
from typing import Any

import pytest

from operations.domain.masking import MASK
from operations.domain.privacy import kept

CHARGE = {
    "id": "ch_1",
    "amount": 3800,
    "billing_details": {"name": "Jane Canary", "email": "jane@canary.example"},
    "receipt_email": "jane@canary.example",
    "receipt_url": "https://canary.example/receipt",
    "payment_method_details": {"card": {"last4": "4242", "fingerprint": "FpCanary"}},
    "metadata": {"password": "canary", "order": "4417", "note": "key sk_live_Canary123"},
    "shipping": None,
    "refunds": {"data": [{"id": "re_1", "metadata": {"customer_email": "j@canary.example"}}]},
}


def test_what_a_match_needs_stays_and_the_rest_is_dots() -> None:
    assert kept(CHARGE) == {
        "id": "ch_1",
        "amount": 3800,
        "billing_details": MASK,
        "receipt_email": MASK,
        "receipt_url": MASK,
        "payment_method_details": MASK,
        "metadata": {"password": MASK, "order": "4417", "note": f"key {MASK}"},
        "shipping": None,
        "refunds": {"data": [{"id": "re_1", "metadata": {"customer_email": MASK}}]},
    }


@pytest.mark.parametrize(
    "value",
    [
        CHARGE,
        *({name: "x"} for name in ("email", "Customer_Email", "my_api_key_2", "home_address")),
        {"a": ["sk_live_Canary123"]},
        {"a": {"b": "Bearer abcdefghijkl"}},
        {"a": "pi_1_secret_abc"},
    ],
)
def test_whatever_is_private_is_dropped_and_the_rest_left_alone(value: Any) -> None:
    before = json.dumps(value)
    assert kept(value) != value
    assert json.dumps(value) == before


def test_what_is_ordinary_is_kept_as_the_very_same_object() -> None:
    refund = {
        "id": "evt_1",
        "request": {"id": "req_1", "idempotency_key": "reconcile-1"},
        "data": {"object": {"id": "re_1", "destination_details": {"card": {"reference": "1"}}}},
        "more": [{"receipt_number": None}, "a_b", 1],
    }
    assert kept(refund) is refund
