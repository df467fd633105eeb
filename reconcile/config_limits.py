"""Reads amounts of money: who must agree to closing by hand, and how much may be unknown."""

from collections.abc import Mapping

from django.core.exceptions import ImproperlyConfigured

from operations.domain.bulk import BulkLimits
from operations.domain.exposure import ExposureLimit, ExposureScope
from operations.domain.money import CURRENCIES
from reconcile.environment import Environment, whole_number

# About a hundred US dollars each, in the currency's minor unit.
DEFAULT_SECOND_PERSON_ABOVE = {
    "aud": 15_000,
    "cad": 14_000,
    "chf": 9_000,
    "eur": 10_000,
    "gbp": 8_000,
    "jpy": 15_000,
    "usd": 10_000,
}


def read_second_person_above(env: Environment) -> Mapping[str, int]:
    """Minor units by currency."""
    name = "RECONCILE_SECOND_PERSON_ABOVE"
    limits: dict[str, int] = {}
    for part in env.listed(name):
        currency, colon, amount = part.partition(":")
        if not colon or currency not in CURRENCIES:
            raise ImproperlyConfigured(
                f'{name} must be pairs of currency and amount, such as "usd:10000,jpy:20000", '
                f'not "{part}".'
            )
        limits[currency] = whole_number(name, amount, least=0, most=10**12)
    return limits or dict(DEFAULT_SECOND_PERSON_ABOVE)


def read_bulk_alone(env: Environment) -> BulkLimits:
    """How much one person may close at once."""
    return BulkLimits(
        rows=env.whole("RECONCILE_BULK_ALONE_ROWS", 200, least=0, most=10_000),
        times=env.whole("RECONCILE_BULK_ALONE_TIMES", 10, least=0, most=1_000_000),
    )


def read_exposure_limits(env: Environment) -> tuple[ExposureLimit, ...]:
    """None unless set."""
    name = "RECONCILE_EXPOSURE_LIMITS"
    limits: list[ExposureLimit] = []
    for part in env.listed(name):
        scope, what, most = [*part.split(":"), "", ""][:3]
        if scope not in set(ExposureScope) or what not in {"count", *CURRENCIES}:
            raise ImproperlyConfigured(
                f'{name} must be limits such as "account:count:50,customer:usd:20000" for account, '
                f'agent or customer, not "{part}".'
            )
        currency = "" if what == "count" else what
        amount = whole_number(name, most, least=1, most=10**12)
        limits.append(ExposureLimit(ExposureScope(scope), currency, amount))
    return tuple(limits)
