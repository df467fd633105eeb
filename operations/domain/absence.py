"""What it is worth that look-ups did not find a refund.

Absence settles nothing. It is graded, so that a person knows what a `failed` would rest on: the
list was read to its end, the provider's lag had passed since the last send, the provider's total is
explained by the refunds on the list, and two look-ups some time apart showed the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

#: Two look-ups agree only when they are this far apart, in seconds.
APART_S = 300


class Lack(StrEnum):
    """What an absence lacks to be worth a `failed`."""

    NOT_LOOKED = "not_looked"
    LIST_PROVES_NOTHING = "list_proves_nothing"
    INCOMPLETE = "incomplete"
    SENT_SINCE = "sent_since"
    TOO_SOON = "too_soon"
    TOTAL_NOT_READ = "total_not_read"
    UNEXPLAINED = "unexplained"
    NOT_TWICE = "not_twice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look-up as far as absence goes. Times in UTC, amounts in the Stripe unit.

    `absent`: the refund was not among what was read. `explained` is None when the provider's total
    could not be read. `shown` names the refunds on the list.
    """

    at: datetime
    absent: bool
    complete: bool
    explained: bool | None
    shown: tuple[str, ...] = ()
    provider_total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What the newest look-up lacks; nothing when `failed` may be suggested.

    `agrees_since` is the oldest look-up that showed the same, without another one in between.
    """

    lacks: tuple[Lack, ...]
    looked_at: datetime | None = None
    agrees_since: datetime | None = None

    @property
    def suggests_failed(self) -> bool:
        """Whether the absence is worth what can be had."""
        return not self.lacks


def grade(
    looks: Sequence[Look], *, last_sent_at: datetime | None, conclusive_after_s: int | None
) -> Grade:
    """Grade an absence out of all look-ups of an operation, oldest first.

    `conclusive_after_s`: how long after a send the provider's list shows it; None for never.
    """
    if not looks or not looks[-1].absent:
        return Grade(lacks=(Lack.NOT_LOOKED,))
    newest = looks[-1]
    lacks: list[Lack] = []
    if conclusive_after_s is None:
        lacks.append(Lack.LIST_PROVES_NOTHING)
    if not newest.complete:
        lacks.append(Lack.INCOMPLETE)
    too_early = _too_early(newest, last_sent_at, conclusive_after_s or 0)
    if too_early is not None:
        lacks.append(too_early)
    if newest.explained is None:
        lacks.append(Lack.TOTAL_NOT_READ)
    elif not newest.explained:
        lacks.append(Lack.UNEXPLAINED)
    since = _agrees_since(looks, last_sent_at, conclusive_after_s or 0)
    if newest.at - since < timedelta(seconds=APART_S):
        lacks.append(Lack.NOT_TWICE)
    return Grade(lacks=tuple(lacks), looked_at=newest.at, agrees_since=since)


def _too_early(look: Look, last_sent_at: datetime | None, lag_s: int) -> Lack | None:
    if last_sent_at is None:
        return None
    if look.at < last_sent_at:
        return Lack.SENT_SINCE
    return Lack.TOO_SOON if look.at < last_sent_at + timedelta(seconds=lag_s) else None


def _agrees_since(looks: Sequence[Look], last_sent_at: datetime | None, lag_s: int) -> datetime:
    """The oldest look-up of the unbroken row that showed what the newest shows, lag passed."""
    newest = looks[-1]
    since = newest.at
    for look in reversed(looks[:-1]):
        agrees = (look.absent, look.complete, look.explained, look.shown, look.provider_total) == (
            True,
            newest.complete,
            newest.explained,
            newest.shown,
            newest.provider_total,
        )
        if not agrees or _too_early(look, last_sent_at, lag_s) is not None:
            break
        since = look.at
    return since
