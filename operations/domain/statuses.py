"""Statuses of an operation and the one table of how they change.

The guard of the model, the trigger of the database and the table in the docs are made from
`TRANSITIONS`. A cell that is not in the table is refused.
"""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The outcome of an operation. Being in flight is a lease, not a status."""

    OPEN = "open"
    PROCESSING = "processing"
    UNKNOWN = "unknown"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


#: The failure code of an operation that a person closed as failed.
CLOSED_BY_PERSON = "closed_by_person"
UNRESOLVED = frozenset([Status.OPEN, Status.PROCESSING, Status.UNKNOWN])
SETTLED = frozenset([Status.SUCCEEDED, Status.FAILED])


class UnknownReason(StrEnum):
    """Why what we know does not decide it."""

    SERVER_ERROR = "server_error"
    BUDGET_SPENT = "budget_spent"
    DEADLINE_PASSED = "deadline_passed"
    KEY_WINDOW_CLOSED = "key_window_closed"
    KEY_RETENTION_UNCLEAR = "key_retention_unclear"
    INTERRUPTED = "interrupted"
    UNSAFE_REFUSAL = "unsafe_refusal"
    UNREADABLE_ANSWER = "unreadable_answer"
    REOPENED = "reopened"


class Attention(StrEnum):
    """Why a person must look although the status alone would not say so."""

    CONFLICT = "conflict"
    DUPLICATE_REFUND = "duplicate_refund"
    MISMATCH = "mismatch"
    FAILED_AFTER_SUCCESS = "failed_after_success"
    DISPUTED = "disputed"
    CONFIGURATION = "configuration"


class Fact(StrEnum):
    """What can be learned about an operation and asks for a change of its status."""

    SEND_REFUSED = "send_refused"
    LEFT_UNDECIDED = "left_undecided"
    PROVIDER_PENDING = "provider_pending"
    PROVIDER_SUCCEEDED = "provider_succeeded"
    PROVIDER_FAILED = "provider_failed"
    CLOSED_SUCCEEDED = "closed_succeeded"
    CLOSED_FAILED = "closed_failed"
    REOPENED = "reopened"


@dataclass(frozen=True, slots=True)
class Transition:
    """Where a fact leads. `attention` is raised with it; `to` may be the status it had."""

    to: Status
    attention: Attention | None = None


class TransitionRefused(Exception):
    """This status does not take this fact; nothing was changed."""

    def __init__(self, status: Status, fact: Fact) -> None:
        self.status = status
        self.fact = fact
        super().__init__(f"An operation that is {status} does not take {fact}.")


_OPEN, _PROCESSING, _UNKNOWN = Status.OPEN, Status.PROCESSING, Status.UNKNOWN
_SUCCEEDED, _FAILED = Status.SUCCEEDED, Status.FAILED

TRANSITIONS: dict[tuple[Status, Fact], Transition] = {
    (_OPEN, Fact.SEND_REFUSED): Transition(_FAILED),
    (_OPEN, Fact.LEFT_UNDECIDED): Transition(_UNKNOWN),
    (_OPEN, Fact.PROVIDER_PENDING): Transition(_PROCESSING),
    (_OPEN, Fact.PROVIDER_SUCCEEDED): Transition(_SUCCEEDED),
    (_OPEN, Fact.PROVIDER_FAILED): Transition(_FAILED),
    (_PROCESSING, Fact.PROVIDER_PENDING): Transition(_PROCESSING),
    (_PROCESSING, Fact.PROVIDER_SUCCEEDED): Transition(_SUCCEEDED),
    (_PROCESSING, Fact.PROVIDER_FAILED): Transition(_FAILED),
    (_PROCESSING, Fact.CLOSED_SUCCEEDED): Transition(_SUCCEEDED),
    (_PROCESSING, Fact.CLOSED_FAILED): Transition(_FAILED),
    (_UNKNOWN, Fact.PROVIDER_PENDING): Transition(_PROCESSING),
    (_UNKNOWN, Fact.PROVIDER_SUCCEEDED): Transition(_SUCCEEDED),
    (_UNKNOWN, Fact.PROVIDER_FAILED): Transition(_FAILED),
    (_UNKNOWN, Fact.CLOSED_SUCCEEDED): Transition(_SUCCEEDED),
    (_UNKNOWN, Fact.CLOSED_FAILED): Transition(_FAILED),
    (_SUCCEEDED, Fact.PROVIDER_PENDING): Transition(_SUCCEEDED),
    (_SUCCEEDED, Fact.PROVIDER_SUCCEEDED): Transition(_SUCCEEDED),
    (_SUCCEEDED, Fact.PROVIDER_FAILED): Transition(_FAILED, Attention.FAILED_AFTER_SUCCESS),
    (_FAILED, Fact.PROVIDER_PENDING): Transition(_FAILED, Attention.CONFLICT),
    (_FAILED, Fact.PROVIDER_SUCCEEDED): Transition(_FAILED, Attention.CONFLICT),
    (_FAILED, Fact.PROVIDER_FAILED): Transition(_FAILED),
    # Only what people found, and only by two of them: see `may_be_reopened`.
    (_FAILED, Fact.REOPENED): Transition(_UNKNOWN),
}


def transition(status: Status, fact: Fact) -> Transition:
    """Where `fact` leads from `status`; raises TransitionRefused for a cell not in the table."""
    try:
        return TRANSITIONS[status, fact]
    except KeyError:
        raise TransitionRefused(status, fact) from None


def status_changes() -> list[tuple[Status, Status]]:
    """Each real change (from, to) of the table, sorted: what the database trigger lets through."""
    changes = {(start, step.to) for (start, _), step in TRANSITIONS.items() if start != step.to}
    return sorted(changes)
