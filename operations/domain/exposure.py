"""Back-pressure: how much may be unknown before new operations are refused."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class ExposureScope(StrEnum):
    """Whose unknown operations are counted."""

    ACCOUNT = "account"
    AGENT = "agent"
    CUSTOMER = "customer"


@dataclass(frozen=True, slots=True)
class ExposureLimit:
    """The most that may be unknown in a scope.

    `currency` "" counts operations; else `most` is an amount in the Stripe unit of the currency.
    """

    scope: ExposureScope
    currency: str
    most: int


@dataclass(frozen=True, slots=True)
class Exposure:
    """What is unknown in a scope: `amounts` by currency, in its Stripe unit."""

    scope: ExposureScope
    operations: int
    amounts: dict[str, int]


def passed_limit(
    exposures: Iterable[Exposure], limits: Iterable[ExposureLimit]
) -> ExposureLimit | None:
    """The first limit that is reached or passed, or None."""
    by_scope = {exposure.scope: exposure for exposure in exposures}
    for limit in limits:
        exposure = by_scope.get(limit.scope)
        if exposure is None:
            continue
        held = exposure.amounts.get(limit.currency, 0) if limit.currency else exposure.operations
        if held >= limit.most:
            return limit
    return None
