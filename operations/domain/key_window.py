"""How long a key may be trusted."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from operations.domain.contract import Contract, SavedAnswers


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWindowPolicy:
    """`window_s` may only shorten the contract's window; `margin_s` is taken off its end."""

    window_s: int
    margin_s: int

    @property
    def send_time(self) -> timedelta:
        """How long an operation may be sent at all, under whatever contract."""
        return timedelta(seconds=max(self.window_s - self.margin_s, 0))


def window_closes_at(
    *,
    first_send: datetime,
    contract: Contract,
    policy: KeyWindowPolicy,
    promised_until: datetime | None = None,
) -> datetime | None:
    """The end (UTC) of the time to send with the key; None when the provider states no window.

    Counted from the first send, because the provider starts no sooner than that. A provider that
    saves no answers executes a key again at any time, so its window says nothing.
    `promised_until` is the end written down at an earlier send; it never moves to later.
    """
    forgets = contract.saved_answers is SavedAnswers.NOTHING
    if not contract.has_key or contract.key_window_s is None or forgets:
        return None
    seconds = min(contract.key_window_s, policy.window_s) - policy.margin_s
    closes_at = first_send + timedelta(seconds=max(seconds, 0))
    return closes_at if promised_until is None else min(closes_at, promised_until)
