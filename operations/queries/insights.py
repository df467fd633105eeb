"""Insights: what is unknown now, and what happened in a range of hours.

The past comes from the hourly counts, one query whatever the range; the present from the index of
what is unknown. No figure is read from the settled operations.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from operations.domain.access import Accounts
from operations.domain.durations import percentile_s
from operations.domain.money import Money
from operations.models import Account, ApiKey, Measure, SummingState
from operations.queries.access import narrowed

#: Where the ages of unknown operations are cut, in seconds.
AGE_CUTS_S = (300, 900, 1_800, 3_600, 7_200, 14_400, 86_400)
#: How far back the chart by hour goes.
RECENT_HOURS = 12


@dataclass(kw_only=True)
class Figures:
    """What was counted in one part of the range.

    `sends` and `refunds`: operations opened in it by how often they were sent, and by how many
    refunds the provider has for them. `resolved`: what stopped being unknown, by its bucket.
    """

    sends: Counter[int] = field(default_factory=Counter)
    refunds: Counter[int] = field(default_factory=Counter)
    resolved: Counter[int] = field(default_factory=Counter)
    unknown: int = 0

    def add(self, measure: str, bucket: int, count: int) -> None:
        """Take in one row."""
        match Measure(measure):
            case Measure.SENDS:
                self.sends[bucket] += count
            case Measure.REFUNDS:
                self.refunds[bucket] += count
            case Measure.RESOLVED:
                self.resolved[bucket] += count
            case Measure.UNKNOWN:
                self.unknown += count

    @property
    def operations(self) -> int:
        """How many were opened."""
        return sum(self.sends.values())

    @property
    def sends_made(self) -> int:
        """How often the provider was asked for them."""
        return sum(times * count for times, count in self.sends.items())

    @property
    def sends_per_operation(self) -> float | None:
        """Of those that were sent at all."""
        sent = self.operations - self.sends[0]
        return self.sends_made / sent if sent else None

    @property
    def refunds_made(self) -> int:
        """How many refunds the provider has for them."""
        return sum(refunds * count for refunds, count in self.refunds.items())

    @property
    def refunded(self) -> int:
        """How many operations have a refund."""
        return sum(count for refunds, count in self.refunds.items() if refunds)

    @property
    def duplicates(self) -> int:
        """Refunds beyond the first of their operation."""
        return self.refunds_made - self.refunded

    @property
    def refunds_per_operation(self) -> float | None:
        """1 means that nobody was paid twice."""
        return self.refunds_made / self.refunded if self.refunded else None

    @property
    def closed(self) -> int:
        """How many stopped being unknown."""
        return sum(self.resolved.values())

    @property
    def p50_s(self) -> float | None:
        """Half were resolved in this time."""
        return percentile_s(self.resolved, 0.5)

    @property
    def p95_s(self) -> float | None:
        """All but 5 in 100 were."""
        return percentile_s(self.resolved, 0.95)

    @property
    def unknown_share(self) -> float | None:
        """How many became unknown, in per cent of those opened."""
        return 100 * self.unknown / self.operations if self.operations else None


@dataclass(kw_only=True)
class Unknown:
    """What is unknown now in one part. `amounts` by currency, in its Stripe unit: all of it, or
    nothing, may have moved."""

    operations: int = 0
    amounts: Counter[str] = field(default_factory=Counter)

    def exposure(self) -> list[Money]:
        """The most that may have moved, a currency each."""
        return [Money(amount, currency) for currency, amount in sorted(self.amounts.items())]


@dataclass(kw_only=True)
class Whose:
    """The operations of one agent at one account."""

    account: Account | None
    agent: ApiKey | None
    past: Figures
    now: Unknown


@dataclass(kw_only=True)
class Insights:
    """All that the page shows. `ages` counts what is unknown in each of the ages."""

    total: Figures
    days: dict[datetime, Figures]
    hours: dict[datetime, Figures]
    reasons: dict[str, tuple[Figures, Unknown]]
    whose: list[Whose]
    unknown: Unknown
    oldest_at: datetime | None
    ages: list[int]
    by_account: list[tuple[Account, Unknown]]
    summed_at: datetime | None
    accounts: list[Account]
    agents: list[ApiKey]


#: Days are made once an hour of the range, and hours are added up before the four ways of looking.
_PAST = """
WITH hours AS MATERIALIZED (
    SELECT hour, date_trunc('day', hour, %(zone)s) AS day,
        CASE WHEN hour >= %(recent)s THEN hour END AS recent
    FROM generate_series(date_trunc('hour', %(start)s::timestamptz, 'UTC'),
        %(now)s + interval '1 hour', interval '1 hour') AS hour
), added AS MATERIALIZED (
    SELECT day, recent, account_id, agent_id, reason, measure, bucket, sum(count) AS count
    FROM operations_hourcount JOIN hours USING (hour)
    WHERE hour >= date_trunc('hour', %(start)s::timestamptz, 'UTC')
        AND (%(account)s::bigint IS NULL OR account_id = %(account)s)
        AND (%(accounts)s::bigint[] IS NULL OR account_id = ANY (%(accounts)s))
        AND (%(agent)s::bigint IS NULL OR agent_id = %(agent)s)
    GROUP BY day, recent, account_id, agent_id, reason, measure, bucket
)
SELECT grouping(day) = 0, grouping(recent) = 0, grouping(reason) = 0,
    day, recent, account_id, agent_id, reason, measure, bucket, sum(count)::bigint
FROM added
GROUP BY GROUPING SETS (
    (day, measure, bucket), (recent, measure, bucket), (reason, measure, bucket),
    (account_id, agent_id, measure, bucket))
"""

_NOW = """
SELECT account_id, opened_by_id, unknown_reason, currency,
    width_bucket(extract(epoch FROM %(now)s - needs_person_since)::float8, %(cuts)s::float8[]),
    count(*), sum(amount)::bigint, min(needs_person_since)
FROM operations_operation
WHERE status = 'unknown'
    AND (%(account)s::bigint IS NULL OR account_id = %(account)s)
    AND (%(accounts)s::bigint[] IS NULL OR account_id = ANY (%(accounts)s))
    AND (%(agent)s::bigint IS NULL OR opened_by_id = %(agent)s)
GROUP BY 1, 2, 3, 4, 5
"""


def read_insights(
    *,
    now: datetime,
    start: datetime,
    zone: str,
    account: int | None,
    agent: int | None,
    within: Accounts = None,
) -> Insights:
    """Five queries, whatever the size. `zone` (an IANA name) says where days begin."""
    accounts = {
        row.pk: row
        for row in Account.objects.filter(**narrowed(within, "pk")).order_by("name", "livemode")
    }
    agents = {row.pk: row for row in ApiKey.objects.order_by("name", "pk")}
    state = SummingState.objects.first()
    found = Insights(
        total=Figures(),
        days=defaultdict(Figures),
        hours=defaultdict(Figures),
        reasons=defaultdict(lambda: (Figures(), Unknown())),
        whose=[],
        unknown=Unknown(),
        oldest_at=None,
        ages=[0] * (len(AGE_CUTS_S) + 1),
        by_account=[],
        summed_at=state.summed_at if state else None,
        accounts=list(accounts.values()),
        agents=list(agents.values()),
    )
    whose: dict[tuple[int, int | None], tuple[Figures, Unknown]] = defaultdict(
        lambda: (Figures(), Unknown())
    )
    chosen = {
        "account": account,
        "agent": agent,
        "accounts": None if within is None else sorted(within),
    }
    recent = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=RECENT_HOURS - 1)
    past = {**chosen, "zone": zone, "start": start, "now": now, "recent": recent}
    for row in _rows(_PAST, past):
        _take_past(found, whose, row)
    for row in _rows(_NOW, {**chosen, "now": now, "cuts": list(AGE_CUTS_S)}):
        _take_now(found, whose, row)
    by_account: dict[int, Unknown] = defaultdict(Unknown)
    for (account_id, agent_id), (figures, unknown) in whose.items():
        found.whose.append(
            Whose(
                account=accounts.get(account_id),
                agent=agents.get(agent_id) if agent_id else None,
                past=figures,
                now=unknown,
            )
        )
        by_account[account_id].operations += unknown.operations
        by_account[account_id].amounts.update(unknown.amounts)
    if within is not None:
        # Other agents are none of this reader's business.
        met = {row.agent.pk for row in found.whose if row.agent}
        found.agents = [row for row in found.agents if row.pk in met]
    found.whose.sort(key=lambda row: (-row.past.operations, str(row.agent), str(row.account)))
    found.by_account = [(accounts[pk], row) for pk, row in sorted(by_account.items())]
    return found


def _take_past(found: Insights, whose: Any, row: tuple[Any, ...]) -> None:
    is_day, is_recent, is_reason, day, recent, account, agent, reason, measure, bucket, count = row
    if is_day:
        found.days[day].add(measure, bucket, count)
        found.total.add(measure, bucket, count)
    elif is_recent:
        if recent is not None:
            found.hours[recent].add(measure, bucket, count)
    elif is_reason:
        if reason:
            found.reasons[reason][0].add(measure, bucket, count)
    else:
        whose[account, agent][0].add(measure, bucket, count)


def _take_now(found: Insights, whose: Any, row: tuple[Any, ...]) -> None:
    account, agent, reason, currency, age, count, amount, oldest_at = row
    for part in (found.unknown, found.reasons[reason][1], whose[account, agent][1]):
        part.operations += count
        part.amounts[currency] += amount
    found.ages[age] += count
    found.oldest_at = min(found.oldest_at or oldest_at, oldest_at)


def _rows(sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
