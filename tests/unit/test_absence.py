"""What an absence is worth: every condition alone and all of them together."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from operations.domain.absence import APART_S, Lack, Look, grade

SENT = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
LAG_S = 60


def look(seconds: float, **changes: object) -> Look:
    """A look-up so many seconds after the last send."""
    found = Look(
        at=SENT + timedelta(seconds=seconds),
        absent=True,
        complete=True,
        explained=True,
        shown=("re_1",),
        provider_total=100,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def lacks(*looks: Look, lag_s: int | None = LAG_S, sent: datetime | None = SENT) -> set[Lack]:
    return set(grade(looks, last_sent_at=sent, conclusive_after_s=lag_s).lacks)


EARLY, LATE = look(LAG_S), look(LAG_S + APART_S)


def test_failed_is_suggested_when_nothing_is_lacking() -> None:
    found = grade([EARLY, LATE], last_sent_at=SENT, conclusive_after_s=LAG_S)

    assert found.suggests_failed
    assert (found.agrees_since, found.looked_at) == (EARLY.at, LATE.at)


@pytest.mark.parametrize(
    ("complete", "explained", "late", "twice", "conclusive"),
    list(
        itertools.product(
            [True, False], [True, False, None], [True, False], [True, False], [True, False]
        )
    ),
)
def test_each_condition_is_wanted_whatever_the_others_are(
    complete: bool, explained: bool | None, late: bool, twice: bool, conclusive: bool
) -> None:
    at = LAG_S + APART_S if late else LAG_S - 1
    newest = look(at, complete=complete, explained=explained)
    looks = [replace(newest, at=newest.at - timedelta(seconds=APART_S)), newest]
    found = lacks(*(looks if twice else looks[1:]), lag_s=LAG_S if conclusive else None)

    assert (Lack.INCOMPLETE in found) is not complete
    assert (Lack.UNEXPLAINED in found) is (explained is False)
    assert (Lack.TOTAL_NOT_READ in found) is (explained is None)
    assert (Lack.LIST_PROVES_NOTHING in found) is not conclusive
    if conclusive:
        assert (Lack.TOO_SOON in found) is not late
    if not twice:
        assert Lack.NOT_TWICE in found
    everything = complete and explained is True and late and twice and conclusive
    assert (not found) is everything


@pytest.mark.parametrize(
    ("between", "agrees"),
    [
        ({}, True),
        ({"absent": False}, False),
        ({"complete": False}, False),
        ({"explained": False}, False),
        ({"shown": ("re_1", "re_2")}, False),
        ({"provider_total": 200}, False),
    ],
)
def test_a_look_up_between_that_shows_something_else_breaks_the_agreement(
    between: dict[str, object], agrees: bool
) -> None:
    found = lacks(EARLY, look(LAG_S + 100, **between), LATE)

    assert (Lack.NOT_TWICE not in found) is agrees


def test_a_look_up_before_the_lag_has_passed_does_not_agree_with_a_later_one() -> None:
    assert lacks(look(LAG_S - 1), look(LAG_S + APART_S - 1)) == {Lack.NOT_TWICE}


def test_five_minutes_apart_are_wanted() -> None:
    assert lacks(EARLY, look(LAG_S + APART_S - 1)) == {Lack.NOT_TWICE}


def test_what_was_sent_after_the_look_up_takes_its_worth() -> None:
    sent = LATE.at + timedelta(seconds=1)

    assert Lack.SENT_SINCE in lacks(EARLY, LATE, sent=sent)


def test_what_was_never_sent_needs_no_lag() -> None:
    assert lacks(EARLY, LATE, sent=None) == set()


def test_no_look_up_or_one_that_found_it_is_no_absence() -> None:
    assert lacks() == {Lack.NOT_LOOKED}
    assert lacks(EARLY, look(LAG_S + APART_S, absent=False)) == {Lack.NOT_LOOKED}
