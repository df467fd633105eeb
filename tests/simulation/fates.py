"""What becomes of one send, drawn before it leaves."""

from dataclasses import dataclass, replace
from random import Random

from operations.domain.answers import Answer, AnswerKind

NOT_SENT = Answer(kind=AnswerKind.NOT_SENT, message="Connection refused.")
CONNECTION_LOST = Answer(kind=AnswerKind.CONNECTION_LOST, message="Read timed out.")


@dataclass(frozen=True, kw_only=True)
class Fate:
    """One way a send can go. Times in seconds.

    `in_front`: the answer of something before the idempotency layer. `shown`: what the client
    sees in place of the provider's answer. `takes_s`: how long the execution holds the key.
    """

    name: str
    way_there_s: float = 0.1
    takes_s: float = 0.0
    way_back_s: float = 0.1
    in_front: Answer | None = None
    shown: Answer | None = None


def refusal(
    status: int,
    error_type: str,
    code: str,
    *,
    retry_after_s: float | None = None,
    should_retry: bool | None = None,
) -> Answer:
    """An error in Stripe's form."""
    return Answer(
        kind=AnswerKind.RESPONSE,
        http_status=status,
        body={"error": {"type": error_type, "code": code}},
        error_type=error_type,
        error_code=code,
        message=f"HTTP {status} {code}".strip(),
        retry_after_s=retry_after_s,
        should_retry=should_retry,
    )


def answered(saved: Answer, *, replayed: bool) -> Answer:
    """A saved answer, given again."""
    return replace(saved, replayed=replayed)


def page(status: int) -> Answer:
    """An HTML page of something between us and the provider."""
    return Answer(kind=AnswerKind.RESPONSE, http_status=status, body="<html>", message="HTML")


_UNREADABLE = Answer(kind=AnswerKind.UNREADABLE, http_status=200, body={})
_REDIRECTED = Answer(kind=AnswerKind.UNREADABLE, http_status=302, body="")

#: Calls without trouble, quick and slow.
SMOOTH = (
    Fate(name="answered"),
    Fate(name="answered"),
    Fate(name="answered", takes_s=4.0, way_back_s=2.0),
)

TROUBLE = (
    Fate(name="not_sent"),
    Fate(name="lost_on_the_way"),
    Fate(name="answer_lost", shown=CONNECTION_LOST),
    Fate(name="answer_lost", shown=CONNECTION_LOST, way_back_s=9.0),
    Fate(name="answer_lost", shown=CONNECTION_LOST, way_back_s=60.0),
    # The process was frozen while its answer waited in the socket: longer than the lease.
    Fate(name="late_answer", way_back_s=50.0),
    Fate(name="late_answer", way_back_s=400.0),
    # The network delivers the request twice; we sent it once.
    Fate(name="doubled"),
    Fate(name="doubled", takes_s=4.0, shown=CONNECTION_LOST),
    Fate(name="slow", takes_s=30.0),
    Fate(name="slow", takes_s=30.0),
    Fate(name="slow", takes_s=75.0),
    Fate(name="gateway", shown=page(502)),
    Fate(name="gateway", shown=page(504), takes_s=12.0),
    Fate(name="gateway_in_front", in_front=page(502)),
    Fate(name="unavailable", in_front=refusal(503, "api_error", "", should_retry=True)),
    Fate(name="unavailable_for_good", shown=refusal(503, "api_error", "", should_retry=False)),
    Fate(name="rate_limit", in_front=refusal(429, "rate_limit_error", "rate_limit")),
    Fate(
        name="rate_limit",
        in_front=refusal(429, "rate_limit_error", "lock_timeout", retry_after_s=2.0),
    ),
    Fate(name="error_before"),
    Fate(name="error_after"),
    Fate(name="error_rolls_forward"),
    Fate(name="refused"),
    # A refusal that is not saved: it says nothing of an earlier send with the same key.
    Fate(name="invalid", in_front=refusal(400, "invalid_request_error", "parameter_invalid")),
    Fate(name="invalid", in_front=refusal(400, "invalid_request_error", "parameter_invalid")),
    Fate(name="forbidden", in_front=refusal(403, "invalid_request_error", "account_invalid")),
    Fate(name="unauthorized", in_front=refusal(401, "invalid_request_error", "")),
    Fate(
        name="misplaced",
        in_front=refusal(404, "invalid_request_error", "resource_missing"),
    ),
    Fate(name="unreadable", shown=_UNREADABLE),
    Fate(name="redirected", shown=_REDIRECTED),
)


#: What a resend meets more often than a first send: it must not be taken to speak of that one.
_ON_RESEND = tuple(fate for fate in TROUBLE if fate.name in ("invalid", "rate_limit"))


def draw_troubles(rng: Random) -> tuple[Fate, ...]:
    """The troubles that one world has: a few kinds, or all of them."""
    return tuple(rng.sample(TROUBLE, rng.choice((3, 8, len(TROUBLE)))))


def draw_fate(rng: Random, troubles: tuple[Fate, ...], share: float, *, resend: bool) -> Fate:
    """The fate of the next send; `share` is how many go wrong."""
    if rng.random() >= share:
        return rng.choice(SMOOTH)
    if resend and rng.random() < 0.6:
        troubles = _ON_RESEND
    fate = rng.choice(troubles)
    if fate.takes_s == 0.0 and rng.random() < 0.2:
        return replace(fate, takes_s=3.0)
    return fate


def draw_life(rng: Random, late: float) -> tuple[str, list[tuple[float, str]]]:
    """The first status of a refund, and its later ones with the pause before each in seconds.

    `late` is the share of refunds that do not simply succeed at once.
    """
    if rng.random() >= late:
        return "succeeded", []
    pause = rng.choice((2.0, 40.0, 900.0, 20_000.0, 150_000.0))
    return rng.choice(
        (
            ("pending", [(pause, "succeeded")]),
            ("pending", [(pause, "failed")]),
            ("pending", [(pause, "succeeded"), (pause, "failed")]),
            ("requires_action", [(pause, "canceled")]),
            ("requires_action", [(pause, "succeeded")]),
            ("succeeded", [(pause, "failed")]),
        )
    )
