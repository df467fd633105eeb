"""How often and how long one may try."""

from dataclasses import dataclass
from datetime import datetime, timedelta

#: A pause between two sends of one call is never longer than this, in seconds.
MAX_BACKOFF_S = 30.0
_MOST_DOUBLINGS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Attempts and seconds. `send_s`: the longest one send can take (connect plus read)."""

    attempts_per_call: int
    attempts_per_operation: int
    call_deadline_s: float
    backoff_base_s: float
    send_s: float


def backoff_s(*, attempts: int, base_s: float, jitter: float, at_least_s: float = 0.0) -> float:
    """Full jitter: a share (`jitter`, 0 to 1) of the doubled base, and no less than asked for.

    Source: AWS Architecture Blog, "Exponential Backoff And Jitter".
    """
    doublings = min(max(attempts - 1, 0), _MOST_DOUBLINGS)
    ceiling = min(MAX_BACKOFF_S, base_s * 2.0**doublings)
    return max(at_least_s, ceiling * jitter)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBudget:
    """What is left of one caller's call."""

    attempts_left: int
    ends_at: datetime

    @classmethod
    def start(cls, budget: Budget, now: datetime) -> "CallBudget":
        """A fresh call that begins at `now` (UTC)."""
        return cls(
            attempts_left=budget.attempts_per_call,
            ends_at=now + timedelta(seconds=budget.call_deadline_s),
        )

    def allows(self, at: datetime, budget: Budget) -> bool:
        """Whether a send that starts at `at` fits in what is left.

        A deadline shorter than one send leaves room for the one that starts with the call.
        """
        longest_s = min(budget.send_s, budget.call_deadline_s)
        return self.attempts_left > 0 and at + timedelta(seconds=longest_s) <= self.ends_at

    def spend(self) -> "CallBudget":
        """The budget after one more send."""
        return CallBudget(attempts_left=self.attempts_left - 1, ends_at=self.ends_at)
