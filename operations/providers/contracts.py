"""Contracts of providers that are spoken to like Stripe: Stripe's own, and ones that promise less.

The lesser ones are for tests and for trying things out against the sandbox (`--contract`), which
keeps exactly these promises. They show what follows from each answer in docs/providers.md: none of
the rules knows a name.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from operations.domain.contract import Contract, KeyLocation, SavedAnswers
from operations.providers.stripe import STRIPE_CONTRACT

#: No keys: nothing is saved or repeated, and a concurrent send is simply executed.
NO_KEYS = replace(
    STRIPE_CONTRACT,
    provider="no_keys",
    key_location=KeyLocation.NONE,
    key_max_length=0,
    key_window_s=None,
    saved_answers=SavedAnswers.NOTHING,
    frozen_statuses=frozenset(),
    concurrent_statuses=frozenset(),
)
#: Only successes are kept for a key: after any other answer the key executes again.
SUCCESS_ONLY = replace(
    STRIPE_CONTRACT,
    provider="success_only",
    saved_answers=SavedAnswers.SUCCESS_ONLY,
    frozen_statuses=frozenset(),
)
#: Nobody states how long a key is remembered.
UNSTATED_WINDOW = replace(STRIPE_CONTRACT, provider="unstated_window", key_window_s=None)
#: A refund is only received at first, in a word of the provider's own; its end comes later.
RECEIVED_ONLY = replace(
    STRIPE_CONTRACT, provider="received_only", pending_statuses=frozenset(["received"])
)
#: A list that lacks a refund proves nothing, however late it is read.
NEVER_CONCLUSIVE = replace(
    STRIPE_CONTRACT, provider="never_conclusive", lookup_conclusive_after_s=None
)

#: By the name that an account carries as its provider.
SPOKEN_TO_LIKE_STRIPE: Mapping[str, Contract] = MappingProxyType(
    {
        contract.provider: contract
        for contract in (
            STRIPE_CONTRACT,
            NO_KEYS,
            SUCCESS_ONLY,
            UNSTATED_WINDOW,
            RECEIVED_ONLY,
            NEVER_CONCLUSIVE,
        )
    }
)
