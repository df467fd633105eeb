"""How long a key may be trusted."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from operations.domain.contract import Contract, KeyLocation, SavedAnswers
from operations.domain.key_window import KeyWindowPolicy, window_closes_at

from .contracts import STRIPE_LIKE

FIRST = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("contract_s", "window_s", "margin_s", "seconds"),
    [
        (86_400, 86_400, 900, 85_500),
        (86_400, 3_600, 900, 2_700),
        (3_600, 86_400, 900, 2_700),
        (86_400, 86_400, 0, 86_400),
        (600, 86_400, 900, 0),
        (86_400, 600, 600, 0),
    ],
)
def test_the_shorter_window_counts_less_the_margin(
    contract_s: int, window_s: int, margin_s: int, seconds: int
) -> None:
    closes_at = window_closes_at(
        first_send=FIRST,
        contract=replace(STRIPE_LIKE, key_window_s=contract_s),
        policy=KeyWindowPolicy(window_s=window_s, margin_s=margin_s),
    )
    assert closes_at == FIRST + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "contract",
    [
        replace(STRIPE_LIKE, key_window_s=None),
        replace(STRIPE_LIKE, key_location=KeyLocation.NONE),
        replace(STRIPE_LIKE, saved_answers=SavedAnswers.NOTHING),
    ],
    ids=["unknown window", "no key", "nothing saved"],
)
def test_a_key_that_nobody_vouches_for_has_no_window(contract: Contract) -> None:
    policy = KeyWindowPolicy(window_s=86_400, margin_s=900)
    assert window_closes_at(first_send=FIRST, contract=contract, policy=policy) is None


@pytest.mark.parametrize(("promised_s", "seconds"), [(60, 60), (90_000, 85_500)])
def test_a_window_that_was_promised_is_never_stretched(promised_s: int, seconds: int) -> None:
    closes_at = window_closes_at(
        first_send=FIRST,
        contract=STRIPE_LIKE,
        policy=KeyWindowPolicy(window_s=86_400, margin_s=900),
        promised_until=FIRST + timedelta(seconds=promised_s),
    )
    assert closes_at == FIRST + timedelta(seconds=seconds)
