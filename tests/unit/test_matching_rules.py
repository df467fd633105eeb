"""When a refund is ours, and what differs when it claims to be."""

from dataclasses import replace
from itertools import permutations
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.domain.matching import (
    Field,
    Verdict,
    compare,
    differences,
    names_the_payment,
    our_mark,
    place_differences,
)
from operations.domain.refund_state import (
    RefundStatus,
    counts_as_refunded,
    fact_of,
    furthest,
)

from .contracts import MARK, OPERATION, TERMS, refund


def test_our_mark_names_operation_and_environment() -> None:
    mark = our_mark(MARK)
    assert mark is not None
    assert (mark.operation_id, mark.environment) == (UUID(OPERATION), "tests")


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"reconcile_operation_id": ""},
        {"reconcile_operation_id": "4417"},
        {"reconcile_environment": "tests"},
        {"RECONCILE_OPERATION_ID": OPERATION},
    ],
)
def test_metadata_without_an_operation_is_no_mark(metadata: dict[str, str]) -> None:
    assert our_mark(metadata) is None


@given(text=st.text())
def test_no_text_in_the_metadata_raises(text: str) -> None:
    our_mark({"reconcile_operation_id": text})


def test_a_fitting_refund_is_the_same_in_every_field() -> None:
    rows = compare(TERMS, refund())
    assert {row.verdict for row in rows} == {Verdict.SAME}
    assert differences(TERMS, refund()) == ()
    assert names_the_payment(TERMS, refund())


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"amount": 3_799}, Field.AMOUNT),
        ({"amount": 0}, Field.AMOUNT),
        ({"currency": "eur"}, Field.CURRENCY),
        ({"charge": "ch_2"}, Field.CHARGE),
        ({"payment_intent": "pi_2"}, Field.PAYMENT_INTENT),
        ({"metadata": MARK | {"reconcile_operation_id": str(UUID(int=7))}}, Field.REFERENCE),
        ({"metadata": MARK | {"reconcile_environment": "other"}}, Field.REFERENCE),
        ({"metadata": {"reconcile_operation_id": OPERATION}}, Field.REFERENCE),
    ],
)
def test_one_other_field_is_one_difference(changes: dict[str, Any], field: Field) -> None:
    assert [row.field for row in differences(TERMS, refund(**changes))] == [field]


@pytest.mark.parametrize(
    "changes", [{"charge": ""}, {"payment_intent": ""}, {"metadata": {}}, {"currency": ""}]
)
def test_a_field_that_is_left_out_is_missing_and_no_difference(changes: dict[str, Any]) -> None:
    assert differences(TERMS, refund(**changes)) == ()
    verdicts = [row.verdict for row in compare(TERMS, refund(**changes))]
    assert verdicts.count(Verdict.MISSING) == 1


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"charge": ""}, True),
        ({"payment_intent": ""}, True),
        ({"charge": "", "payment_intent": ""}, False),
        ({"charge": "ch_2", "payment_intent": "pi_2"}, False),
    ],
)
def test_a_refund_names_its_payment_by_charge_or_intent(
    changes: dict[str, Any], names: bool
) -> None:
    assert names_the_payment(TERMS, refund(**changes)) is names


def test_account_and_mode_are_compared() -> None:
    there = replace(TERMS, account="acct_1", livemode=True)
    assert place_differences(there, account="acct_1", livemode=True) == ()
    wrong = place_differences(there, account="", livemode=False)
    assert [(row.field, row.sent, row.provider) for row in wrong] == [
        (Field.ACCOUNT, "acct_1", ""),
        (Field.MODE, "live", "test"),
    ]


REPORTED = [*map(str, RefundStatus), "something_new", ""]


@given(reports=st.lists(st.sampled_from(REPORTED), min_size=1, max_size=5))
def test_any_order_of_the_reports_ends_in_the_same_state(reports: list[str]) -> None:
    ends = set()
    for order in permutations(reports):
        kept = "pending"
        for status in (*order, order[0]):
            kept = furthest(kept, status)
        ends.add(kept)
    assert len(ends) == 1


@pytest.mark.parametrize("status", [*RefundStatus])
def test_a_status_that_nobody_knows_takes_no_place(status: RefundStatus) -> None:
    assert furthest(status, "something_new") == status
    assert furthest("something_new", status) == status


def test_only_a_refund_that_failed_leaves_the_till() -> None:
    out = {status for status in REPORTED if counts_as_refunded(status)}
    assert out == set(REPORTED) - {"failed", "canceled"}
    assert fact_of("something_new") is None
    assert all(fact_of(status) is not None for status in RefundStatus)
