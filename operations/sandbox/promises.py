"""What the sandbox promises about keys, answers and lists: Stripe's contract, and lesser ones.

Every lesser one breaks a promise that a caller may have come to rely on, in the worst way that its
words still allow.
"""

from __future__ import annotations

from dataclasses import dataclass


class NoSuchContractError(ValueError):
    """The sandbox knows no contract of this name."""


@dataclass(frozen=True)
class Promises:
    """One contract.

    Without `takes_keys` every POST is executed. Without `saves_refusals` only a 2xx is kept for
    the key: after any other answer the same key executes again. Without `states_window` keys go
    when `expire_keys` says so, and the clock has no part in it. A refund starts in `new_status`
    and stays there until `finish_refunds`. Without `lists_all` a refund made over the API never
    shows in a list; it can be read by its id.
    """

    takes_keys: bool = True
    saves_refusals: bool = True
    states_window: bool = True
    new_status: str | None = None
    lists_all: bool = True


CONTRACTS = {
    "stripe": Promises(),
    "no_keys": Promises(takes_keys=False),
    "success_only": Promises(saves_refusals=False),
    "unstated_window": Promises(states_window=False),
    "received_only": Promises(new_status="received"),
    "never_conclusive": Promises(lists_all=False),
}


def promises_of(contract: str) -> Promises:
    """The contract of this name, or NoSuchContractError."""
    try:
        return CONTRACTS[contract]
    except KeyError:
        known = ", ".join(CONTRACTS)
        raise NoSuchContractError(f"{contract!r} is none of {known}") from None
