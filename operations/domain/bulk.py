"""Acting on many operations at once: what will become of each, by the rules that hold for one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from operations.domain.closure import (
    Absence,
    ClosingOutcome,
    SecondPersonReason,
    absence_is_fresh,
    is_closable,
    second_person_reasons,
)
from operations.domain.money import Money
from operations.domain.statuses import SETTLED, Status

#: The most operations that one run acts on.
MOST_ROWS = 10_000


class BulkAction(StrEnum):
    """What can be done with many at once. Nothing here sends money."""

    LOOK_UP = "look_up"
    MATCH_AGAIN = "match_again"
    CLAIM = "claim"
    ASSIGN = "assign"
    CLOSE_FAILED = "close_failed"
    CLOSE_SUCCEEDED = "close_succeeded"
    MARK_OUTSIDE = "mark_outside"

    @property
    def outcome(self) -> ClosingOutcome | None:
        """What it records; None when it closes nothing."""
        match self:
            case BulkAction.CLOSE_FAILED:
                return ClosingOutcome.FAILED
            case BulkAction.CLOSE_SUCCEEDED:
                return ClosingOutcome.SUCCEEDED
            case (
                BulkAction.LOOK_UP
                | BulkAction.MATCH_AGAIN
                | BulkAction.CLAIM
                | BulkAction.ASSIGN
                | BulkAction.MARK_OUTSIDE
            ):
                return None
            case _:
                assert_never(self)

    @property
    def decides(self) -> bool:
        """Whether it says what became of money: then it is typed out how many, and many want two
        persons."""
        return self.outcome is not None or self is BulkAction.MARK_OUTSIDE


class Outlook(StrEnum):
    """What will become of one operation."""

    WILL = "will"
    SECOND = "second"
    CANNOT = "cannot"


class Hindrance(StrEnum):
    """Why it can't be done together with others."""

    STILL_SENT = "still_sent"
    SETTLED = "settled"
    CLAIMED = "claimed"
    PROPOSED = "proposed"
    CONTRADICTED = "contradicted"
    NO_REFUND = "no_refund"
    BELONGS = "belongs"
    FOUND = "found"
    GONE = "gone"


class RunReason(StrEnum):
    """Why a run as a whole wants a second person."""

    ROWS = "rows"
    SUM = "sum"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkLimits:
    """How much one person may decide at once: so many rows, and in each currency so many times
    the amount that one person may close at all."""

    rows: int = 200
    times: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An operation as far as acting on it with others goes.

    `holder`: somebody else who works on it, "" for nobody. `refund`: the one refund that is known
    to be its own, "" for none or several. `absence`: the newest look-up, if it found nothing.
    """

    status: Status
    money: Money
    is_flagged: bool
    has_live_refund: bool
    refund: str
    holder: str
    proposal_waits: bool
    absence: Absence | None


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What will become of it and why: second person's reasons or hindrances, none when it will."""

    outlook: Outlook
    why: tuple[SecondPersonReason | Hindrance, ...] = ()


_WILL = Foreseen(Outlook.WILL)
_CLAIMING = (BulkAction.CLAIM, BulkAction.ASSIGN)


def foresee(
    action: BulkAction,
    standing: Standing,
    *,
    limits: Mapping[str, int],
    conclusive_after_s: int | None,
    now: datetime,
) -> Foreseen:
    """What the action will do to an operation that stands like this.

    `limits`: per currency what one person may close. A contradiction, which two people may decide
    upon by itself, is never decided together with others.
    """
    outcome = action.outcome
    if outcome is None:
        held = action in _CLAIMING and standing.holder
        return _cannot(Hindrance.CLAIMED) if held else _WILL
    hindrances = _hindrances(outcome, standing)
    if hindrances:
        return _cannot(*hindrances)
    reasons = second_person_reasons(
        outcome=outcome,
        money=standing.money,
        limits=limits,
        has_contradiction=False,
        fresh_absence=absence_is_fresh(
            standing.absence, now=now, conclusive_after_s=conclusive_after_s
        ),
    )
    return Foreseen(Outlook.SECOND, reasons) if reasons else _WILL


def foresee_outside(*, counts: bool, belongs: bool, is_found: bool) -> Foreseen:
    """What marking a refund as made outside will come to.

    `counts`: money is out by it. `belongs`: to an operation. `is_found`: somebody did so already.
    """
    found = (
        (Hindrance.GONE, not counts),
        (Hindrance.BELONGS, belongs),
        (Hindrance.FOUND, is_found),
    )
    hindrances = [hindrance for hindrance, holds in found if holds]
    return _cannot(*hindrances) if hindrances else _WILL


def _hindrances(outcome: ClosingOutcome, standing: Standing) -> list[Hindrance]:
    if not is_closable(standing.status):
        is_over = standing.status in SETTLED
        return [Hindrance.SETTLED if is_over else Hindrance.STILL_SENT]
    found: list[Hindrance] = []
    if standing.holder:
        found.append(Hindrance.CLAIMED)
    if standing.proposal_waits:
        found.append(Hindrance.PROPOSED)
    against = outcome is ClosingOutcome.FAILED and standing.has_live_refund
    if standing.is_flagged or against:
        found.append(Hindrance.CONTRADICTED)
    if outcome is ClosingOutcome.SUCCEEDED and not (standing.refund and standing.has_live_refund):
        found.append(Hindrance.NO_REFUND)
    return found


def _cannot(*hindrances: Hindrance) -> Foreseen:
    return Foreseen(Outlook.CANNOT, hindrances)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many there are of each outlook, and their sums per currency in its Stripe unit.

    Currencies are never added together.
    """

    counts: dict[Outlook, int] = field(default_factory=dict)
    sums: dict[str, dict[Outlook, int]] = field(default_factory=dict)


def tally(rows: Iterable[tuple[Outlook, Money]]) -> Tally:
    """Count what was foreseen."""
    found = Tally()
    for outlook, money in rows:
        found.counts[outlook] = found.counts.get(outlook, 0) + 1
        sums = found.sums.setdefault(money.currency, {})
        sums[outlook] = sums.get(outlook, 0) + money.amount
    return found


def run_reasons(
    action: BulkAction, tallied: Tally, *, alone: BulkLimits, limits: Mapping[str, int]
) -> tuple[RunReason, ...]:
    """Why the run wants a second person; empty when one is enough.

    Only what one person would decide by it counts: the others wait for a second person one by one.
    """
    if not action.decides:
        return ()
    reasons: list[RunReason] = []
    if tallied.counts.get(Outlook.WILL, 0) > alone.rows:
        reasons.append(RunReason.ROWS)
    if any(
        sums.get(Outlook.WILL, 0) > alone.times * limits.get(currency, 0)
        for currency, sums in tallied.sums.items()
    ):
        reasons.append(RunReason.SUM)
    return tuple(reasons)
