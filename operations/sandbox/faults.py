"""Faults that the control path asks for, and which of them a call meets.

A call passes three layers. In *front* of the idempotency layer nothing is executed or saved. While
it is *executed* a fault changes the result, which is saved for the key. On the way *back* the true
answer, saved already, is damaged or lost. A call meets at most one fault of each group of `GROUPS`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass, field

from .answers import Answer, JsonObject, StripeError, as_json, server_error

ENDPOINTS = (
    "refunds.create", "refunds.list", "refunds.retrieve", "refunds.update", "refunds.cancel",
    "charges.retrieve", "payment_intents.retrieve", "events.list", "events.retrieve",
)  # fmt: skip

FRONT_ONLY = ("401", "403", "409", "429")
WIRE = (
    "drop", "hang", "truncate", "empty_object", "empty_list", "empty_body", "redirect",
    "502_html", "503", "504",
)  # fmt: skip
RESULT = ("500", "402", "refuse")
STATUS = ("pending", "requires_action")
GROUPS = {"front": (*FRONT_ONLY, *WIRE), "slow": ("slow",), "result": RESULT, "status": STATUS}
#: The lists that can lag, the usual one first.
LAGGING = ("refunds.list", "events.list")
KINDS = (*FRONT_ONLY, *WIRE, *RESULT, *STATUS, "slow", "lag")

DEFAULT_HANG_S = 30.0
DEFAULT_SLOW_S = 1.0
HTML_502 = b"<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"
HTML_504 = b"<html><head><title>504</title></head><body>Gateway Time-out</body></html>"


class FaultNotPossibleError(ValueError):
    """The control path asked for a fault that does not exist."""


@dataclass(frozen=True)
class Target:
    """What a call is about: all ids of its payment, our operation id, its idempotency key."""

    payments: tuple[str, ...] = ()
    operation: str | None = None
    key: str | None = None


@dataclass
class Match:
    """Which calls are meant; an empty field matches all."""

    payment: str | None = None
    operation: str | None = None
    key: str | None = None

    def covers(self, target: Target) -> bool:
        """Whether the call's target is meant."""
        return (
            (self.payment is None or self.payment in target.payments)
            and self.operation in (None, target.operation)
            and self.key in (None, target.key)
        )


@dataclass
class Fault:
    """One fault. `times` counts down; `seconds` is the length of a hang, slowness or lag.

    `then` says what follows a hang: `drop` or `answer`. `reset` closes with RST instead of FIN.
    """

    kind: str
    endpoint: str = "refunds.create"
    when: str = "before"
    times: int = 1
    seconds: float | None = None
    code: str | None = None
    message: str | None = None
    param: str | None = None
    then: str = "drop"
    reset: bool = False
    location: str = "/_sandbox/redirected"
    retry_after_s: int = 1
    match: Match = field(default_factory=Match)
    id: int = 0
    taken: int = 0

    @property
    def label(self) -> str:
        """For the log: the kind, and the moment where it matters."""
        timed = self.kind in (*WIRE, "500", "slow")
        return f"{self.kind} {self.when}" if timed else self.kind

    @property
    def duration_s(self) -> float:
        """How long a call is held, in seconds."""
        if self.seconds is not None:
            return self.seconds
        return DEFAULT_HANG_S if self.kind == "hang" else DEFAULT_SLOW_S

    def answer(self) -> Answer:
        """The answer that this fault gives in place of the true one, where it gives one."""
        match self.kind:
            case "401" | "402" | "403" | "409" | "429" | "500" | "503" | "refuse":
                return self._refusal()
            case "empty_object" | "truncate":
                return as_json(200, {})
            case "empty_list":
                return as_json(200, [])
            case "502_html":
                return Answer(502, HTML_502, content_type="text/html")
            case "504":
                return Answer(504, HTML_504, content_type="text/html")
            case "redirect":
                return Answer(302, b"", {"Location": self.location}, "text/plain")
            case _:
                return Answer(200, b"")

    def _refusal(self) -> Answer:
        status, kind, code, message = REFUSALS[self.kind]
        if self.kind == "500":
            return server_error().answer()
        extra: JsonObject = {}
        code = self.code or code
        if code == "insufficient_balance_for_refund":
            extra, code = {"message_code": code}, None
        error = StripeError(
            status,
            self.message or message,
            kind=kind,
            code=code,
            param=self.param,
            extra=extra,
        )
        answer = error.answer()
        if self.kind == "429":
            answer.headers["Retry-After"] = str(self.retry_after_s)
        return answer


REFUSALS: dict[str, tuple[int, str, str | None, str]] = {
    "401": (401, "invalid_request_error", "api_key_expired", "Expired API Key provided."),
    "402": (402, "card_error", "card_declined", "The card was declined."),
    "403": (
        403,
        "invalid_request_error",
        "account_invalid",
        "The provided key does not have access to this account.",
    ),
    "409": (
        409,
        "idempotency_error",
        "idempotency_key_in_use",
        "There is currently another in-progress request using this Idempotent Key.",
    ),
    "429": (429, "invalid_request_error", "rate_limit", "Too many requests."),
    "500": (500, "api_error", None, "An unknown error occurred"),
    "503": (503, "api_error", None, "The service is unavailable; try again later."),
    "refuse": (400, "invalid_request_error", None, "This refund is refused."),
}


def read_fault(given: JsonObject) -> Fault:
    """A fault from the control path's JSON, or `FaultNotPossibleError` saying what is wrong."""
    values = {name: value for name, value in given.items() if value is not None}
    try:
        match = Match(**values.pop("match", {}))
        fault = Fault(**{**values, "kind": str(values.get("kind")), "match": match})
    except TypeError as error:
        raise FaultNotPossibleError(f"a fault has no such field: {error}") from error
    if fault.kind == "lag" and fault.endpoint not in LAGGING:
        fault.endpoint = LAGGING[0]
    choices: tuple[tuple[str, str, Collection[str]], ...] = (
        ("kind", fault.kind, KINDS),
        ("endpoint", fault.endpoint, ENDPOINTS),
        ("when", fault.when, ("before", "after")),
        ("then", fault.then, ("drop", "answer")),
    )
    if not isinstance(fault.times, int) or fault.times < 1:
        raise FaultNotPossibleError(f"times {fault.times!r} is not a positive integer")
    if not isinstance(fault.duration_s, int | float) or fault.duration_s < 0:
        raise FaultNotPossibleError(f"seconds {fault.seconds!r} is not a duration")
    for name, value, allowed in choices:
        if value not in allowed:
            raise FaultNotPossibleError(f"{name} {value!r} is none of {', '.join(allowed)}")
    return fault


class FaultTable:
    """The faults that are waiting, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self.waiting: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Let the next matching calls meet this fault. A lag replaces the one before it."""
        fault.id = next(self._ids)
        if fault.kind == "lag":
            same = ("lag", fault.endpoint, fault.match)
            self.waiting = [f for f in self.waiting if (f.kind, f.endpoint, f.match) != same]
        if fault.kind != "lag" or fault.duration_s > 0:
            self.waiting.append(fault)
        return fault

    def clear(self) -> None:
        """Forget all faults and the lag."""
        self.waiting.clear()

    def take(
        self, endpoint: str, target: Target, kinds: Collection[str], when: str | None = None
    ) -> Fault | None:
        """Use up one matching fault of these kinds, or none; `when` narrows the wire's faults."""
        for fault in self.waiting:
            if (
                fault.kind in kinds
                and fault.endpoint == endpoint
                and (when is None or fault.when == when or fault.kind in FRONT_ONLY)
                and fault.match.covers(target)
            ):
                fault.times -= 1
                fault.taken += 1
                if fault.times <= 0:
                    self.waiting.remove(fault)
                return fault
        return None

    def lag_s(self, endpoint: str, target: Target) -> float:
        """How young, in seconds, a thing can be and still be missing from this list."""
        lags = [
            fault.duration_s
            for fault in self.waiting
            if fault.kind == "lag" and fault.endpoint == endpoint and fault.match.covers(target)
        ]
        return max(lags, default=0.0)
