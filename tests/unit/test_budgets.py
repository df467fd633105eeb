"""How often and how long one may try."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.domain.budgets import MAX_BACKOFF_S, Budget, CallBudget, backoff_s

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BUDGET = Budget(
    attempts_per_call=3,
    attempts_per_operation=6,
    call_deadline_s=30.0,
    backoff_base_s=0.5,
    send_s=13.0,
)


@pytest.mark.parametrize(
    ("attempts", "most"), [(0, 0.5), (1, 0.5), (2, 1), (3, 2), (4, 4), (7, 30), (5_000, 30)]
)
def test_a_pause_doubles_up_to_a_limit(attempts: int, most: float) -> None:
    assert backoff_s(attempts=attempts, base_s=0.5, jitter=1.0) == most
    assert backoff_s(attempts=attempts, base_s=0.5, jitter=0.0) == 0.0


@given(
    attempts=st.integers(0, 10_000),
    base_s=st.floats(0, 60),
    jitter=st.floats(0, 1),
    at_least_s=st.floats(0, 3_600),
)
def test_a_pause_is_never_shorter_than_asked_for_nor_longer_than_the_limit(
    attempts: int, base_s: float, jitter: float, at_least_s: float
) -> None:
    pause = backoff_s(attempts=attempts, base_s=base_s, jitter=jitter, at_least_s=at_least_s)
    assert at_least_s <= pause <= max(MAX_BACKOFF_S, at_least_s)


def test_a_call_has_its_attempts_and_no_more() -> None:
    call = CallBudget.start(BUDGET, NOW)
    for _ in range(BUDGET.attempts_per_call):
        assert call.allows(NOW, BUDGET)
        call = call.spend()
    assert not call.allows(NOW, BUDGET)


@pytest.mark.parametrize(("after_s", "fits"), [(0, True), (17, True), (17.001, False), (30, False)])
def test_a_send_begins_only_if_it_can_end_before_the_deadline(after_s: float, fits: bool) -> None:
    call = CallBudget.start(BUDGET, NOW)
    assert call.allows(NOW + timedelta(seconds=after_s), BUDGET) is fits
