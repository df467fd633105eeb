"""How long a key may be trusted."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from operations.domain.contract import Contract


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWindowPolicy:
    """`window_s` may only shorten the contract's window; `margin_s` is taken off its end."""

    window_s: int
    margin_s: int


def window_closes_at(
    *, first_send: datetime, contract: Contract, policy: KeyWindowPolicy
) -> datetime | None:
    """The last moment (UTC) to send with the key; None when the provider states no window.

    Counted from the first send, because the provider starts no later than that.
    """
    if not contract.has_key or contract.key_window_s is None:
        return None
    seconds = min(contract.key_window_s, policy.window_s) - policy.margin_s
    return first_send + timedelta(seconds=max(seconds, 0))
