"""What will become of each of many, and when the whole wants a second person."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from operations.domain.bulk import (
    BulkAction,
    BulkLimits,
    Hindrance,
    Outlook,
    RunReason,
    Standing,
    foresee,
    run_reasons,
    tally,
)
from operations.domain.closure import Absence, SecondPersonReason
from operations.domain.money import Money
from operations.domain.statuses import Status

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LIMITS = {"usd": 10_000, "eur": 10_000}
ABSENT = Absence(
    looked_at=NOW - timedelta(minutes=5), complete=True, explained=True, seconds_after_send=600
)
STANDS = Standing(
    status=Status.UNKNOWN,
    money=Money(3_800, "usd"),
    is_flagged=False,
    has_live_refund=False,
    refund="",
    holder="",
    proposal_waits=False,
    absence=ABSENT,
)
FAILED, SUCCEEDED = BulkAction.CLOSE_FAILED, BulkAction.CLOSE_SUCCEEDED


@pytest.mark.parametrize(
    ("action", "changes", "outlook", "why"),
    [
        (FAILED, {}, Outlook.WILL, ()),
        (FAILED, {"absence": None}, Outlook.SECOND, (SecondPersonReason.NO_FRESH_ABSENCE,)),
        (
            FAILED,
            {"absence": replace(ABSENT, complete=False)},
            Outlook.SECOND,
            (SecondPersonReason.NO_FRESH_ABSENCE,),
        ),
        (FAILED, {"money": Money(10_001, "usd")}, Outlook.SECOND, (SecondPersonReason.AMOUNT,)),
        (FAILED, {"money": Money(1, "sek")}, Outlook.SECOND, (SecondPersonReason.AMOUNT,)),
        (FAILED, {"status": Status.OPEN}, Outlook.CANNOT, (Hindrance.STILL_SENT,)),
        (FAILED, {"status": Status.FAILED}, Outlook.CANNOT, (Hindrance.SETTLED,)),
        (FAILED, {"holder": "Dana"}, Outlook.CANNOT, (Hindrance.CLAIMED,)),
        (FAILED, {"proposal_waits": True}, Outlook.CANNOT, (Hindrance.PROPOSED,)),
        (FAILED, {"is_flagged": True}, Outlook.CANNOT, (Hindrance.CONTRADICTED,)),
        (FAILED, {"has_live_refund": True}, Outlook.CANNOT, (Hindrance.CONTRADICTED,)),
        (SUCCEEDED, {}, Outlook.CANNOT, (Hindrance.NO_REFUND,)),
        (SUCCEEDED, {"refund": "re_1"}, Outlook.CANNOT, (Hindrance.NO_REFUND,)),
        (SUCCEEDED, {"refund": "re_1", "has_live_refund": True}, Outlook.WILL, ()),
        (BulkAction.CLAIM, {"holder": "Dana"}, Outlook.CANNOT, (Hindrance.CLAIMED,)),
        (BulkAction.CLAIM, {"status": Status.FAILED}, Outlook.WILL, ()),
        (BulkAction.LOOK_UP, {"holder": "Dana"}, Outlook.WILL, ()),
    ],
)
def test_each_is_judged_by_the_rules_that_hold_for_one(
    action: BulkAction, changes: dict[str, Any], outlook: Outlook, why: tuple[Any, ...]
) -> None:
    seen = foresee(
        action, replace(STANDS, **changes), limits=LIMITS, conclusive_after_s=60, now=NOW
    )

    assert (seen.outlook, seen.why) == (outlook, why)


def test_currencies_are_never_added_together() -> None:
    found = tally(
        [
            (Outlook.WILL, Money(100, "usd")),
            (Outlook.WILL, Money(50, "usd")),
            (Outlook.WILL, Money(7, "jpy")),
            (Outlook.CANNOT, Money(9, "usd")),
        ]
    )

    assert found.counts == {Outlook.WILL: 3, Outlook.CANNOT: 1}
    assert found.sums == {
        "usd": {Outlook.WILL: 150, Outlook.CANNOT: 9},
        "jpy": {Outlook.WILL: 7},
    }


@pytest.mark.parametrize(
    ("rows", "reasons"),
    [
        ([(Outlook.WILL, Money(9_000, "usd"))] * 2, ()),
        ([(Outlook.WILL, Money(1, "usd"))] * 3, (RunReason.ROWS,)),
        ([(Outlook.WILL, Money(10_001, "usd"))] * 2, (RunReason.SUM,)),
        # Each of two currencies is below its own limit.
        ([(Outlook.WILL, Money(19_000, "usd")), (Outlook.WILL, Money(19_000, "eur"))], ()),
        # A currency without a limit always wants two people.
        ([(Outlook.WILL, Money(1, "sek"))], (RunReason.SUM,)),
        # What waits for a second person one by one does not count.
        ([(Outlook.SECOND, Money(99_999, "usd"))] * 9, ()),
    ],
)
def test_a_run_above_the_limits_wants_a_second_person(
    rows: list[tuple[Outlook, Money]], reasons: tuple[RunReason, ...]
) -> None:
    alone = BulkLimits(rows=2, times=2)

    assert run_reasons(FAILED, tally(rows), alone=alone, limits=LIMITS) == reasons
    assert run_reasons(BulkAction.CLAIM, tally(rows), alone=alone, limits=LIMITS) == ()
