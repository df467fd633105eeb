"""Recorded JSON is shown without secrets, and with everything else."""

from typing import Any

import pytest

from operations.domain.masking import MASK, masked


@pytest.mark.parametrize(
    "value",
    [
        {"client_secret": "pi_1_secret_2"},
        {"headers": {"Authorization": "Basic abc"}},
        {"API_KEY": "abc"},
        {"card": [{"cvc": "123"}]},
    ],
)
def test_what_a_name_calls_secret_is_masked(value: dict[str, Any]) -> None:
    text = str(masked(value))
    assert MASK in text
    for secret in ("secret_2", "abc", "123"):
        assert secret not in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key sk_live_51Habc used", f"key {MASK} used"),
        ("whsec_a1b2c3", MASK),
        ("Bearer abcdefghij.klm", MASK),
        ("pi_1_secret_xyz", MASK),
        ("4242 4242 4242 4242 paid", f"{MASK}4242 paid"),
        ("4242424242424242", f"{MASK}4242"),
    ],
)
def test_what_looks_secret_is_masked_wherever_it_stands(text: str, shown: str) -> None:
    assert masked({"note": [text]}) == {"note": [shown]}


@pytest.mark.parametrize(
    "value",
    [
        {"id": "re_3SYb0jKX9vTn7w0B1wEo7gMx", "amount": 3_800, "ok": True, "none": None},
        {"key": "recon-0192f0c1-7e1f-7c55-8d0a-1234567890ab"},
        # Its end has the check digit of a card.
        {"operation": "01a22fe3-de91-7768-9368-410608868608"},
        {"at": "1234567890123", "empty": {"client_secret": ""}},
        {"request": "req_9KdPz3VbT1xqLm", "idempotency_key": "recon-1"},
    ],
)
def test_everything_else_stays(value: dict[str, Any]) -> None:
    assert masked(value) == value


@pytest.mark.parametrize("length", range(12))
def test_a_secret_is_masked_however_short(length: int) -> None:
    secret = "whsec_" + "x" * length
    assert masked(secret) == (MASK if length else secret)


@pytest.mark.parametrize("length", [0, 190, 200, 5_000])
def test_a_secret_is_masked_however_long_its_text(length: int) -> None:
    text = "." * length
    assert masked(f"{text} whsec_abc") == f"{text} {MASK}"
    assert masked(f"{text} whsec_abc") == f"{text} {MASK}"
