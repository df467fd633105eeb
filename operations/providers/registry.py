"""Which adapter serves a provider's name. The only place that knows the names."""

from dataclasses import replace
from functools import lru_cache

from operations.providers.base import Provider
from operations.providers.contracts import SPOKEN_TO_LIKE_STRIPE
from operations.providers.stripe import StripeProvider


@lru_cache(maxsize=16)
def provider_for(
    provider: str,
    *,
    api_key: str,
    api_base: str | None,
    connect_timeout_s: float,
    read_timeout_s: float,
) -> Provider:
    """The adapter for `provider`. Raises LookupError for a name nobody serves."""
    contract = SPOKEN_TO_LIKE_STRIPE.get(provider)
    if contract is None:
        raise LookupError(f"There is no provider named {provider}.")
    if api_base is not None:
        # Whoever answers there is not the provider itself, whose console knows nothing of it.
        contract = replace(contract, pages=())
    return StripeProvider(
        api_key=api_key,
        api_base=api_base,
        connect_timeout_s=connect_timeout_s,
        read_timeout_s=read_timeout_s,
        contract=contract,
    )
