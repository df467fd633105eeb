"""Why a refund has no operation, and what speaks for a possible one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from operations.domain.matching import Verdict
from operations.domain.orphans import (
    Hint,
    OrphanFacts,
    OrphanReason,
    Possible,
    can_be_linked,
    likelihood,
    weigh,
    why_orphan,
)
from operations.domain.statuses import Status

SENT = datetime(2026, 11, 30, 9, 40, 0, 500_000, tzinfo=UTC)
ORPHAN = OrphanFacts(amount=3_800, currency="usd", made_at=SENT.replace(microsecond=0), names="")
POSSIBLE = Possible(
    operation_id="0190",
    amount=3_800,
    currency="usd",
    status=Status.UNKNOWN,
    first_sent_at=SENT,
    has_refund=False,
)


@pytest.mark.parametrize(
    ("known", "names", "exists", "reason"),
    [
        (True, False, False, OrphanReason.NO_REFERENCE),
        (False, False, False, OrphanReason.NOT_OUR_PAYMENT),
        (True, True, False, OrphanReason.REFERENCE_UNKNOWN),
        (False, True, False, OrphanReason.REFERENCE_UNKNOWN),
        (True, True, True, OrphanReason.DIFFERS),
        (False, True, True, OrphanReason.DIFFERS),
    ],
)
def test_reason(known: bool, names: bool, exists: bool, reason: OrphanReason) -> None:
    found = why_orphan(payment_is_known=known, names_operation=names, operation_exists=exists)

    assert found is reason


def verdicts(orphan: OrphanFacts, possible: Possible) -> dict[Hint, Verdict]:
    return {row.hint: row.verdict for row in weigh(orphan, possible)}


def test_everything_speaks_for_it_and_yet_it_names_nothing() -> None:
    found = verdicts(ORPHAN, POSSIBLE)

    assert found.pop(Hint.REFERENCE) is Verdict.MISSING
    assert set(found.values()) == {Verdict.SAME}


@pytest.mark.parametrize(
    ("orphan", "possible", "hint"),
    [
        ({"amount": 3_801}, {}, Hint.AMOUNT),
        ({"currency": "eur"}, {}, Hint.CURRENCY),
        ({"made_at": SENT - timedelta(seconds=2)}, {}, Hint.TIME),
        ({}, {"has_refund": True}, Hint.FREE),
        ({"names": "0191"}, {}, Hint.REFERENCE),
    ],
)
def test_what_speaks_against_it(
    orphan: dict[str, Any], possible: dict[str, Any], hint: Hint
) -> None:
    weighed = weigh(replace(ORPHAN, **orphan), replace(POSSIBLE, **possible))

    assert [row.hint for row in weighed if row.verdict is Verdict.DIFFERENT] == [hint]
    assert likelihood(weighed) < likelihood(weigh(ORPHAN, POSSIBLE))
    contradicts = hint in (Hint.AMOUNT, Hint.CURRENCY, Hint.REFERENCE)
    assert can_be_linked(Status.UNKNOWN, weighed) is not contradicts


@pytest.mark.parametrize("status", list(Status))
def test_only_what_is_not_being_sent_can_be_linked(status: Status) -> None:
    assert can_be_linked(status, weigh(ORPHAN, POSSIBLE)) is (status is not Status.OPEN)


@pytest.mark.parametrize("which", ["orphan", "possible"])
def test_time_that_is_not_stated_says_nothing(which: str) -> None:
    orphan = replace(ORPHAN, made_at=None) if which == "orphan" else ORPHAN
    possible = replace(POSSIBLE, first_sent_at=None) if which == "possible" else POSSIBLE

    assert verdicts(orphan, possible)[Hint.TIME] is Verdict.MISSING
