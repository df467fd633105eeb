"""Reads how notices are delivered."""

import re

from django.core.exceptions import ImproperlyConfigured

from operations.domain.addresses import Network, network
from operations.domain.notices import RETRY_SCHEDULE_S, NoticePolicy
from reconcile.environment import Environment


def read_notices(env: Environment) -> NoticePolicy:
    """The policy; raises ImproperlyConfigured with one sentence."""
    return NoticePolicy(
        allow_networks=_networks(env),
        timeout_s=env.seconds("RECONCILE_NOTICES_TIMEOUT_S", 15, least=0.1, most=60),
        retry_schedule_s=_schedule(env),
        give_up_after_s=env.whole(
            "RECONCILE_NOTICES_GIVE_UP_AFTER_S", 3 * 86_400, least=1, most=30 * 86_400
        ),
        retention_s=env.whole(
            "RECONCILE_NOTICES_RETENTION_S", 30 * 86_400, least=3_600, most=3_650 * 86_400
        ),
    )


def _networks(env: Environment) -> tuple[Network, ...]:
    name = "RECONCILE_NOTICES_ALLOW_NETWORKS"
    found = []
    for part in env.listed(name):
        try:
            found.append(network(part))
        except ValueError:
            raise ImproperlyConfigured(
                f'{name} must be networks such as "10.20.0.0/16,fd00:1::/64", not "{part}".'
            ) from None
    return tuple(found)


def _schedule(env: Environment) -> tuple[int, ...]:
    name = "RECONCILE_NOTICES_RETRY_SCHEDULE_S"
    parts = env.listed(name)
    if not all(re.fullmatch(r"[1-9][0-9]{0,6}", part) for part in parts):
        raise ImproperlyConfigured(
            f'{name} must be pauses in seconds, such as "5,300,1800", not "{",".join(parts)}".'
        )
    return tuple(int(part) for part in parts) or RETRY_SCHEDULE_S
