"""One refund, many reports of it: the order of arrival and repetitions make no difference."""

import functools
import itertools
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.domain.refund_state import (
    RefundStatus,
    counts_as_refunded,
    fact_of,
    furthest,
    is_doubtful,
    known_status,
    merged,
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


SECOND = timedelta(seconds=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOLD = st.tuples(
    st.dictionaries(st.sampled_from(["reference", "failure_reason"]), st.sampled_from("abc")),
    st.integers(0, 2).map(lambda seconds: NOON + seconds * SECOND),
)


@given(told=st.lists(TOLD, max_size=6), data=st.data())
def test_details_end_alike_in_any_order_with_repetitions_and_equal_seconds(
    told: list[tuple[dict[str, str], datetime]], data: st.DataObject
) -> None:
    def ends(reports: list[tuple[dict[str, str], datetime]]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for details, at in reports:
            kept = merged(kept, details, at)
        return kept

    assert ends(data.draw(st.permutations([*told, *told[:2]]))) == ends(told)


def test_a_detail_that_a_later_report_leaves_out_stays() -> None:
    kept = merged(merged({}, {"reference": "arn"}, NOON), {}, NOON + SECOND)
    assert kept == {"reference": [NOON.timestamp(), "arn"]}
    assert merged(kept, {"reference": "older"}, NOON - SECOND) == kept


@pytest.mark.parametrize(
    ("kept_status", "reported", "later", "doubtful"),
    [
        ("failed", "succeeded", -SECOND, False),
        ("failed", "succeeded", 0 * SECOND, True),
        ("failed", "succeeded", SECOND, True),
        ("failed", "canceled", SECOND, False),
        ("succeeded", "pending", SECOND, False),
        ("succeeded", "reversing", -SECOND, True),
        ("reversing", "succeeded", SECOND, True),
    ],
)
def test_a_status_nobody_knows_and_a_failure_taken_back_are_doubtful(
    kept_status: str, reported: str, later: timedelta, doubtful: bool
) -> None:
    assert is_doubtful(kept_status, NOON, reported, NOON + later) is doubtful


def test_thousand_orders_with_repetitions_and_equal_seconds_end_alike() -> None:
    chance = Random(1)
    reports: list[tuple[str, dict[str, str], datetime]] = [
        ("pending", {}, NOON),
        ("pending", {"pending_reason": "processing"}, NOON),
        ("succeeded", {}, NOON),
        ("succeeded", {"reference": "first"}, NOON + SECOND),
        ("succeeded", {"reference": "second"}, NOON + SECOND),
        ("failed", {"failure_reason": "lost_or_stolen_card"}, NOON + 2 * SECOND),
        ("failed", {"failure_reason": "unknown"}, NOON + 2 * SECOND),
        ("canceled", {}, NOON + 2 * SECOND),
    ]
    ends = set()
    for _ in range(1_000):
        told = [*chance.sample(reports, len(reports)), *chance.choices(reports, k=4)]
        details: dict[str, Any] = {}
        for _, said, at in told:
            details = merged(details, said, at)
        ends.add((kept([status for status, _, _ in told]), str(sorted(details.items()))))
    assert len(ends) == 1
