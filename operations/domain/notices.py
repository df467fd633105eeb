"""Notices: what is told to subscribers, and what comes after a try to tell it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network

from operations.domain.statuses import SETTLED, Status


class NoticeType(StrEnum):
    """What a notice is about. The names are a promise to receivers."""

    SUCCEEDED = "refund.succeeded"
    FAILED = "refund.failed"
    UNKNOWN = "refund.unknown"
    FLAGGED = "refund.flagged"
    REOPENED = "refund.reopened"


#: Pauses before the second, third … try, in seconds: three days in all, which are the example
#: schedule of the Standard Webhooks specification.
RETRY_SCHEDULE_S = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
#: A receiver that failed this often in a row gets one try at a time, further and further apart.
TROUBLED_AFTER = 3
_LONGEST_REST_S = 300.0
_LONGEST_ASKED_REST_S = 3_600.0
#: Retries come up to this share later than planned, so that they don't all come at once.
_SPREAD = 0.2
GONE = 410
_BUSY = frozenset([429, 502, 503, 504])


@dataclass(frozen=True, kw_only=True)
class NoticePolicy:
    """How notices are delivered. Names ending in `_s` are seconds.

    `allow_networks`: networks that may be written to although they are not public, and over
    plain http. `give_up_after_s`: a receiver that only failed for this long is disabled.
    """

    allow_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    timeout_s: float = 15.0
    retry_schedule_s: tuple[int, ...] = field(default=RETRY_SCHEDULE_S)
    give_up_after_s: int = 3 * 86_400
    retention_s: int = 30 * 86_400

    @property
    def lease_s(self) -> float:
        """How long a try may take before another worker takes it for lost."""
        return self.timeout_s + 30


def types_of_change(*, before: Status, after: Status, flagged: bool) -> tuple[NoticeType, ...]:
    """What one change of an operation is told as; empty when it is nobody's news.

    `flagged`: a person is asked for by a flag that was not there.
    """
    types = []
    if after != before:
        match after:
            case Status.SUCCEEDED:
                types.append(NoticeType.SUCCEEDED)
            case Status.FAILED:
                types.append(NoticeType.FAILED)
            case Status.UNKNOWN if before not in SETTLED:
                types.append(NoticeType.UNKNOWN)
            case _ if before in SETTLED:
                types.append(NoticeType.REOPENED)
    if flagged:
        types.append(NoticeType.FLAGGED)
    return tuple(types)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came of one try. `http_status` None: no answer came, and `error` says why.

    `body`: the first characters of the answer.
    """

    http_status: int | None = None
    body: str = ""
    error: str = ""
    retry_after_s: float | None = None
    duration_ms: int = 0

    @property
    def taken(self) -> bool:
        """Whether the receiver has it: a 2xx, and nothing else."""
        return self.http_status is not None and 200 <= self.http_status < 300

    def in_words(self) -> str:
        """One line for people."""
        if self.http_status is None:
            return self.error
        return f"HTTP {self.http_status}" + (f": {self.error}" if self.error else "")


@dataclass(frozen=True, kw_only=True)
class AfterFailure:
    """`next_try_at` None: this delivery is given up. `disable`: why the receiver is, or "".

    `resume_at`: nothing else is tried at this receiver before; None: it is not held up.
    """

    next_try_at: datetime | None
    resume_at: datetime | None
    disable: str


def after_failure(
    reply: Reply,
    *,
    tries: int,
    failures: int,
    failing_since: datetime,
    policy: NoticePolicy,
    now: datetime,
    jitter: float,
) -> AfterFailure:
    """What follows a try that failed, the `tries`th of its round.

    `failures`: how many tries of any notice failed at this receiver in a row, this one included,
    the first at `failing_since`. `jitter` from 0 to 1.
    """
    pause_s = _pause_s(reply, tries, policy, jitter)
    next_try_at = None if pause_s is None else now + timedelta(seconds=pause_s)
    disable = ""
    if reply.http_status == GONE:
        disable = "The receiver answered 410 Gone."
    elif now - failing_since >= timedelta(seconds=policy.give_up_after_s):
        days = policy.give_up_after_s / 86_400
        disable = f"Every try of {days:g} days failed; the last one: {reply.in_words()}"
    if disable and next_try_at is None:
        next_try_at = now  # It is kept, and goes out when the subscription is enabled again.
    rest_s = _rest_s(reply, failures)
    return AfterFailure(
        next_try_at=next_try_at,
        resume_at=now + timedelta(seconds=rest_s) if rest_s else None,
        disable=disable[:500],
    )


def _pause_s(reply: Reply, tries: int, policy: NoticePolicy, jitter: float) -> float | None:
    if tries > len(policy.retry_schedule_s):
        return None
    planned = policy.retry_schedule_s[tries - 1] * (1 + _SPREAD * jitter)
    asked = min(reply.retry_after_s or 0.0, 86_400.0)
    return max(planned, asked)


def _rest_s(reply: Reply, failures: int) -> float:
    """How long the whole receiver is left alone."""
    if reply.http_status in _BUSY and reply.retry_after_s:
        return min(reply.retry_after_s, _LONGEST_ASKED_REST_S)
    if failures < TROUBLED_AFTER:
        return 0.0
    return min(_LONGEST_REST_S, 2.0 ** min(failures - TROUBLED_AFTER + 1, 16))
