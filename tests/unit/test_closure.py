"""When a person may close an operation, alone or with a second person."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from operations.domain.closure import (
    Absence,
    ClosingOutcome,
    SecondPersonReason,
    absence_is_fresh,
    is_closable,
    second_person_reasons,
)
from operations.domain.money import Money
from operations.domain.statuses import Status

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LIMITS = {"usd": 10_000, "jpy": 0}


@pytest.mark.parametrize("status", list(Status))
def test_a_person_closes_what_is_not_sent_any_more_and_has_no_end(status: Status) -> None:
    assert is_closable(status) is (status in (Status.UNKNOWN, Status.PROCESSING))


@pytest.mark.parametrize(
    ("age_s", "after_send_s", "complete", "explained", "fresh"),
    [
        (0, 60.0, True, True, True),
        (900, 60.0, True, True, True),
        (900.001, 60.0, True, True, False),
        (0, 59.9, True, True, False),
        (0, -1.0, True, True, False),
        (0, 60.0, False, True, False),
        (0, 60.0, True, False, False),
        (0, None, True, True, True),
    ],
)
def test_an_absence_is_fresh_to_the_second(
    age_s: float, after_send_s: float | None, complete: bool, explained: bool, fresh: bool
) -> None:
    absence = Absence(
        looked_at=NOW - timedelta(seconds=age_s),
        complete=complete,
        explained=explained,
        seconds_after_send=after_send_s,
    )
    assert absence_is_fresh(absence, now=NOW, conclusive_after_s=60) is fresh
    assert not absence_is_fresh(absence, now=NOW, conclusive_after_s=None)


def test_no_look_up_is_no_absence() -> None:
    assert not absence_is_fresh(None, now=NOW, conclusive_after_s=60)


@pytest.mark.parametrize(
    ("amount", "currency", "two"),
    [
        (10_000, "usd", False),
        (10_001, "usd", True),
        (1, "jpy", True),
        (1, "eur", True),
    ],
)
def test_an_amount_above_its_limit_wants_two(amount: int, currency: str, two: bool) -> None:
    reasons = second_person_reasons(
        outcome=ClosingOutcome.SUCCEEDED,
        money=Money(amount, currency),
        limits=LIMITS,
        has_contradiction=False,
        fresh_absence=False,
    )
    assert reasons == ((SecondPersonReason.AMOUNT,) if two else ())


@pytest.mark.parametrize(
    ("large", "contradicted", "fresh", "outcome"),
    list(product([False, True], [False, True], [False, True], ClosingOutcome)),
)
def test_every_reason_counts_by_itself(
    large: bool, contradicted: bool, fresh: bool, outcome: ClosingOutcome
) -> None:
    reasons = second_person_reasons(
        outcome=outcome,
        money=Money(10_001 if large else 10_000, "usd"),
        limits=LIMITS,
        has_contradiction=contradicted,
        fresh_absence=fresh,
    )
    assert (SecondPersonReason.AMOUNT in reasons) is large
    assert (SecondPersonReason.CONTRADICTION in reasons) is contradicted
    unproven = outcome is ClosingOutcome.FAILED and not fresh
    assert (SecondPersonReason.NO_FRESH_ABSENCE in reasons) is unproven
    assert len(reasons) == large + contradicted + unproven
