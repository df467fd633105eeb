"""Nothing of a payment gets lost, whatever is known of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.domain.conservation import NOTHING, Counted, Interval, balance, out_of_operation
from operations.domain.statuses import Status

amounts = st.integers(min_value=0, max_value=10**12)


@given(
    st.builds(
        Counted,
        captured=amounts,
        by_us=amounts,
        by_others=amounts,
        provider_total=amounts,
        in_doubt=amounts,
    )
)
def test_the_parts_add_up_and_the_truth_lies_in_the_interval(counted: Counted) -> None:
    found = balance(counted)
    known = counted.by_us + counted.by_others

    whole = found.by_us + found.by_others + found.unknown + found.free
    assert whole == max(counted.captured, known, counted.provider_total)
    assert min(found.unknown, found.free) >= 0
    assert known <= found.least_out <= found.most_out
    assert found.least_out >= counted.provider_total
    if found.least_out + counted.in_doubt <= counted.captured:
        assert found.most_out - found.least_out == counted.in_doubt
    assert found.unexplained == counted.provider_total - known


def test_a_payment_that_adds_up_has_no_interval() -> None:
    found = balance(
        Counted(captured=10_000, by_us=3_800, by_others=1_200, provider_total=5_000, in_doubt=0)
    )

    assert (found.least_out, found.most_out, found.free) == (5_000, 5_000, 5_000)
    assert (found.unknown, found.unexplained) == (0, 0)


def test_what_the_provider_counts_beyond_every_known_refund_is_unknown_and_not_free() -> None:
    found = balance(
        Counted(captured=10_000, by_us=0, by_others=0, provider_total=3_800, in_doubt=2_000)
    )

    assert (found.unexplained, found.unknown, found.free) == (3_800, 5_800, 4_200)
    assert (found.least_out, found.most_out) == (3_800, 5_800)


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("was_sent", [False, True])
@pytest.mark.parametrize("has_refund", [False, True])
def test_interval_of_an_operation(status: Status, was_sent: bool, has_refund: bool) -> None:
    found = out_of_operation(status=status, amount=100, was_sent=was_sent, has_refund=has_refund)

    if has_refund or status is Status.SUCCEEDED:
        assert found == Interval(100, 100)
    elif was_sent and status is not Status.FAILED:
        assert found == Interval(0, 100)
    else:
        assert found == NOTHING


def test_intervals_add_up() -> None:
    assert Interval(1, 2) + Interval(0, 5) + NOTHING == Interval(1, 7)
