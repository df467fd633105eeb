"""The one table of how an operation changes, cell by cell, and its copy in the documentation."""

from itertools import product
from pathlib import Path

import pytest

from operations.domain.statuses import (
    SETTLED,
    TRANSITIONS,
    UNRESOLVED,
    Attention,
    Fact,
    Status,
    TransitionRefused,
    status_changes,
    transition,
)
from operations.management.commands.show_transitions import transition_table

DOCS = Path(__file__).parents[2] / "docs" / "architecture.md"
_: str | None = None
#: status: what each fact leads to, in the order of Fact; None where it is refused.
EXPECTED: dict[Status, list[str | None]] = {
    Status.OPEN: ["failed", "unknown", "processing", "succeeded", "failed", _, _, _],
    Status.PROCESSING: [_, _, "processing", "succeeded", "failed", "succeeded", "failed", _],
    Status.UNKNOWN: [_, _, "processing", "succeeded", "failed", "succeeded", "failed", _],
    Status.SUCCEEDED: [_, _, "succeeded", "succeeded", "failed", _, _, _],
    Status.FAILED: [_, _, "failed", "failed", "failed", _, _, "unknown"],
}
RAISED = {
    (Status.SUCCEEDED, Fact.PROVIDER_FAILED): Attention.FAILED_AFTER_SUCCESS,
    (Status.FAILED, Fact.PROVIDER_PENDING): Attention.CONFLICT,
    (Status.FAILED, Fact.PROVIDER_SUCCEEDED): Attention.CONFLICT,
}
CELLS = list(product(Status, Fact))


@pytest.mark.parametrize(("status", "fact"), CELLS)
def test_a_cell_leads_where_the_design_says(status: Status, fact: Fact) -> None:
    to = EXPECTED[status][list(Fact).index(fact)]
    if to is None:
        with pytest.raises(TransitionRefused) as refusal:
            transition(status, fact)
        assert (refusal.value.status, refusal.value.fact) == (status, fact)
        return
    step = transition(status, fact)
    assert step.to == to
    assert step.attention == RAISED.get((status, fact))


def test_every_status_is_unresolved_or_settled() -> None:
    assert set(Status) == UNRESOLVED | SETTLED
    assert not UNRESOLVED & SETTLED


def test_failed_is_only_left_by_people_and_success_only_for_failed() -> None:
    left = [
        fact for (start, fact), step in TRANSITIONS.items() if start is Status.FAILED is not step.to
    ]
    assert left == [Fact.REOPENED]
    assert [end for start, end in status_changes() if start is Status.FAILED] == ["unknown"]
    assert [end for start, end in status_changes() if start is Status.SUCCEEDED] == ["failed"]


def test_nothing_comes_back_to_open() -> None:
    assert Status.OPEN not in {step.to for step in TRANSITIONS.values()}


def test_nobody_closes_what_may_still_be_sent() -> None:
    for fact in (Fact.CLOSED_FAILED, Fact.CLOSED_SUCCEEDED):
        assert (Status.OPEN, fact) not in TRANSITIONS


def test_the_documentation_shows_the_table_as_it_is() -> None:
    _before, begins, rest = DOCS.read_text().partition("<!-- transitions:begin -->")
    shown, ends, _after = rest.partition("<!-- transitions:end -->")
    assert begins, f"{DOCS} lacks the marker that the table begins after."
    assert ends, f"{DOCS} lacks the marker that the table ends before."
    assert shown.strip() == transition_table(), "Run `manage.py show_transitions`, paste it."
