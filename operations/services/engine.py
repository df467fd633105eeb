"""What every service works with: the clock, the limits, and a way to the providers."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from django.conf import settings

from operations.domain.budgets import Budget
from operations.domain.bulk import BulkLimits
from operations.domain.exposure import ExposureLimit
from operations.domain.key_window import KeyWindowPolicy
from operations.domain.notices import NoticePolicy
from operations.domain.statuses import Status
from operations.models import Account
from operations.providers import Provider, provider_for
from operations.services.guarding import GuardedProvider, ReadPolicy

#: Look-ups go on for this long after the first one, in days.
LOOKUPS_END_AFTER_DAYS = 30
#: The most that one call waits for its turn under the account's rate limit, in seconds.
LONGEST_WAIT_FOR_TOKEN_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Engine:
    """`clock` gives UTC; `sleep` takes seconds; `jitter` gives a number from 0 to 1."""

    clock: Callable[[], datetime]
    sleep: Callable[[float], None]
    jitter: Callable[[], float]
    budget: Budget
    key_window: KeyWindowPolicy
    lease_s: float
    lookup_schedule_s: tuple[int, ...]
    environment: str
    livemode: bool
    second_person_above: Mapping[str, int]
    repeat_window_s: int
    webhook_secrets: tuple[str, ...]
    open_provider: Callable[[Account], Provider]
    reads: ReadPolicy = field(default_factory=ReadPolicy)
    exposure_limits: tuple[ExposureLimit, ...] = ()
    token_retention_s: int = 90 * 86_400
    notices: NoticePolicy = field(default_factory=NoticePolicy)
    bulk_alone: BulkLimits = field(default_factory=BulkLimits)

    def provider(self, account: Account) -> Provider:
        """The provider of an account, behind the guards."""
        return GuardedProvider(
            inner=self.open_provider(account),
            holder=account,
            sleep=self.sleep,
            jitter=self.jitter,
            reads=self.reads,
            longest_wait_s=min(LONGEST_WAIT_FOR_TOKEN_S, self.lease_s - self.budget.send_s),
        )

    def next_lookup_after(
        self, lookups_made: int, status: Status = Status.UNKNOWN
    ) -> timedelta | None:
        """The pause before the next look-up; None when the schedule has ended.

        The configured steps, then daily until 30 days are over. What the provider has and has
        not finished is in front of nobody, so it is looked up weekly for as long as it takes.
        """
        if lookups_made < len(self.lookup_schedule_s):
            return timedelta(seconds=self.lookup_schedule_s[lookups_made])
        if lookups_made < len(self.lookup_schedule_s) + LOOKUPS_END_AFTER_DAYS:
            return timedelta(days=1)
        return timedelta(days=7) if status is Status.PROCESSING else None


@lru_cache(maxsize=1)
def default_engine() -> Engine:
    """The engine as the settings describe it."""
    config = settings.RECONCILE
    return Engine(
        clock=lambda: datetime.now(UTC),
        sleep=time.sleep,
        jitter=random.random,
        budget=Budget(
            attempts_per_call=config.max_attempts_per_call,
            attempts_per_operation=config.max_attempts_per_operation,
            call_deadline_s=config.call_deadline_s,
            backoff_base_s=config.backoff_base_s,
            send_s=config.connect_timeout_s + config.read_timeout_s,
        ),
        key_window=KeyWindowPolicy(
            window_s=config.key_window_s, margin_s=config.key_safety_margin_s
        ),
        lease_s=config.lease_s,
        lookup_schedule_s=config.lookup_schedule_s,
        environment=config.environment,
        livemode=config.livemode,
        second_person_above=config.second_person_above,
        repeat_window_s=config.repeat_window_s,
        webhook_secrets=config.stripe_webhook_secrets,
        exposure_limits=config.exposure_limits,
        token_retention_s=config.token_retention_s,
        notices=config.notices,
        bulk_alone=config.bulk_alone,
        open_provider=lambda account: provider_for(
            account.provider,
            api_key=config.stripe_api_key,
            api_base=config.stripe_api_base,
            connect_timeout_s=config.connect_timeout_s,
            read_timeout_s=config.read_timeout_s,
        ),
    )
