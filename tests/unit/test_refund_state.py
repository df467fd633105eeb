"""One refund, many reports of it: the order of arrival and repetitions make no difference."""

import functools
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.domain.refund_state import (
    RefundStatus,
    counts_as_refunded,
    fact_of,
    furthest,
    known_status,
)
from operations.domain.statuses import Fact

KNOWN = st.sampled_from([str(status) for status in RefundStatus])
UNHEARD_OF = st.text(max_size=20).filter(lambda text: known_status(text) is None)


def kept(reports: list[str]) -> str:
    """The state that these reports leave, in the order in which they came."""
    return functools.reduce(furthest, reports)


@given(one=KNOWN, other=KNOWN)
def test_two_reports_leave_the_same_in_either_order(one: str, other: str) -> None:
    assert furthest(one, other) == furthest(other, one)


@given(first=KNOWN, second=KNOWN, third=KNOWN)
def test_it_makes_no_difference_what_is_put_together_first(
    first: str, second: str, third: str
) -> None:
    assert furthest(furthest(first, second), third) == furthest(first, furthest(second, third))


@given(status=KNOWN)
def test_a_report_that_comes_twice_changes_nothing(status: str) -> None:
    assert furthest(status, status) == status


@given(reports=st.lists(KNOWN, min_size=1, max_size=5), data=st.data())
def test_any_order_with_any_repetitions_ends_alike(reports: list[str], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(reports))
    repeated = data.draw(st.lists(st.sampled_from(reports), max_size=5))

    assert kept([*shuffled, *repeated]) == kept(reports)


@given(status=KNOWN, unheard_of=UNHEARD_OF)
def test_a_status_that_nobody_knows_never_replaces_one_that_is_known(
    status: str, unheard_of: str
) -> None:
    assert furthest(status, unheard_of) == furthest(unheard_of, status) == status
    assert fact_of(unheard_of) is None
    assert counts_as_refunded(unheard_of)


def test_a_failure_is_never_taken_back_by_an_older_success() -> None:
    for order in itertools.permutations(["pending", "succeeded", "failed"]):
        assert kept(list(order)) == RefundStatus.FAILED


@pytest.mark.parametrize(
    ("status", "fact", "counts"),
    [
        (RefundStatus.PENDING, Fact.PROVIDER_PENDING, True),
        (RefundStatus.REQUIRES_ACTION, Fact.PROVIDER_PENDING, True),
        (RefundStatus.SUCCEEDED, Fact.PROVIDER_SUCCEEDED, True),
        (RefundStatus.FAILED, Fact.PROVIDER_FAILED, False),
        (RefundStatus.CANCELED, Fact.PROVIDER_FAILED, False),
    ],
)
def test_every_status_says_what_it_means(status: RefundStatus, fact: Fact, counts: bool) -> None:
    assert fact_of(status) is fact
    assert counts_as_refunded(status) is counts
