"""From when on events are fetched, and when that is done without anybody asking."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from operations.domain.sentences import Outside, Refusal, say

#: How far back providers list their events; Stripe does for 30 days ("List all events").
LONGEST = timedelta(days=30)
#: What is fetched before the last webhook: events come late and out of order.
_OVERLAP = timedelta(hours=1)
_DURATION = re.compile(r"([0-9]{1,6})([smhdw])")
_UNIT = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


class SinceRefused(Refusal):
    """This is no moment to fetch events from. The sentence says why."""


def read_since(text: str, *, now: datetime) -> datetime:
    """A moment ("2026-05-31T17:45", UTC unless it says otherwise) or how long ago ("6h", "3d").

    Raises SinceRefused.
    """
    text = text.strip()
    ago = _DURATION.fullmatch(text)
    if ago:
        since = now - min(int(ago[1]) * _UNIT[ago[2]], timedelta(days=400))
    else:
        try:
            since = datetime.fromisoformat(text)
            since = since if since.tzinfo else since.replace(tzinfo=UTC)
            since = since.astimezone(UTC)
        except (ValueError, OverflowError):
            raise SinceRefused(
                say(
                    "\u201c{given}\u201d is neither a time such as 2026-05-31T17:45 nor a "
                    "duration such as 90m, 6h or 3d.",
                    given=Outside(text[:40]),
                )
            ) from None
    if since >= now:
        raise SinceRefused(say("That is not in the past."))
    if since < now - LONGEST:
        raise SinceRefused(say("The provider lists its events of the last 30 days only."))
    return since


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """`heard_at`: when the last webhook came, or the last fetching that was not stopped began.

    `sent_at`: the first send after that (the first of all, when nothing was ever heard).
    `tried_at`: when the last fetching began. Each is None for never.
    """

    heard_at: datetime | None
    sent_at: datetime | None
    tried_at: datetime | None = None


def fetch_since(silence: Silence, *, quiet: timedelta, now: datetime) -> datetime | None:
    """From when to fetch events because none comes although refunds are sent; None: not now.

    A send leads to events, so one that none has followed for as long as `quiet` says that webhooks
    do not arrive. `quiet` of zero: never.
    """
    if not quiet or silence.sent_at is None or now - silence.sent_at < quiet:
        return None
    if silence.tried_at is not None and now - silence.tried_at < quiet:
        return None
    begin = (silence.heard_at or silence.sent_at) - _OVERLAP
    # A minute less, so that it is still within the provider's list when it is asked for.
    return max(begin, now - LONGEST + timedelta(minutes=1))
