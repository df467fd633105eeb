"""Of a provider's objects nothing about people and cards is kept, and nothing that opens doors."""

import json
from typing import Any

import pytest

from operations.domain.masking import MASK
from operations.domain.privacy import kept, may_be_private

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
def test_the_quick_look_overlooks_nothing(value: Any) -> None:
    assert kept(value) != value
    assert may_be_private(json.dumps(value).encode())
    assert may_be_private(json.dumps(value, separators=(",", ":")).encode())


def test_an_ordinary_event_is_not_looked_at_twice() -> None:
    refund = {
        "id": "evt_1",
        "request": {"id": "req_1", "idempotency_key": "reconcile-1"},
        "data": {"object": {"id": "re_1", "destination_details": {"card": {"reference": "1"}}}},
    }
    assert not may_be_private(json.dumps(refund).encode())
    assert kept(refund) == refund
