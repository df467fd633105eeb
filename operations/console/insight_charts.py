"""The charts of the insights, put together from the figures."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from operations.console import charts, wording
from operations.queries.insights import RECENT_HOURS, Figures, Insights
from operations.templatetags import charting


@dataclass(frozen=True, slots=True)
class BarChart:
    """One or two series of bars over the same places."""

    grid: list[charts.Grid]
    series: list[list[charts.Bar]]


@dataclass(frozen=True, slots=True)
class LineChart:
    """One or two lines over the same places."""

    grid: list[charts.Grid]
    lines: list[list[charts.Point]]


def charts_of(found: Insights, *, now: datetime, start: datetime) -> dict[str, Any]:
    """Rows for the tables and, from the same rows, the charts."""
    ages = list(zip(_age_labels(), found.ages, strict=True))
    hours = _hours(found, now)
    days = _days(found, now, start)
    sends = _sends(found.total)
    accounts = [(str(account), row) for account, row in found.by_account if row.operations]
    return {
        "ages": ages,
        "age_chart": _bars([label for label, _count in ages], found.ages),
        "hours": hours,
        "hour_chart": _bars(
            [charting.hour(at) for at, _row in hours],
            [row.unknown for _at, row in hours],
            [row.closed for _at, row in hours],
        ),
        "days": days,
        "time_chart": _times(days),
        "ratio_chart": _ratios(days),
        "sends": sends,
        "send_chart": _bars([label for label, *_rest in sends], [row[1] for row in sends]),
        "by_account": accounts,
        "account_chart": _bars(
            [label for label, _row in accounts], [row.operations for _label, row in accounts]
        ),
        "reasons": sorted(
            found.reasons.items(), key=lambda item: (-item[1][1].operations, -item[1][0].unknown)
        ),
    }


def _age_labels() -> list[str]:
    return [
        _("< 5 m"),
        _("5-15 m"),
        _("15-30 m"),
        _("30-60 m"),
        _("1-2 h"),
        _("2-4 h"),
        _("4-24 h"),
        _("> 24 h"),
    ]


def _hours(found: Insights, now: datetime) -> list[tuple[datetime, Figures]]:
    last = now.replace(minute=0, second=0, microsecond=0)
    moments = [last - timedelta(hours=back) for back in reversed(range(RECENT_HOURS))]
    return [(at, found.hours.get(at, Figures())) for at in moments]


def _days(found: Insights, now: datetime, start: datetime) -> list[tuple[datetime, Figures]]:
    """Every day of the range, also those on which nothing happened."""
    zone = timezone.get_current_timezone()
    by_date = {at.astimezone(zone).date(): row for at, row in found.days.items()}
    day, last = start.astimezone(zone).date(), now.astimezone(zone).date()
    rows = []
    while day <= last:
        at = datetime(day.year, day.month, day.day, 12, tzinfo=zone)
        rows.append((at, by_date.get(day, Figures())))
        day += timedelta(days=1)
    return rows


def _sends(total: Figures) -> list[tuple[str, int, float]]:
    """How many operations were sent how often; from five times on together."""
    counts = {times: total.sends[times] for times in range(1, 5)}
    often = sum(count for times, count in total.sends.items() if times >= 5)
    all_sent = sum(counts.values()) + often
    rows = [(str(times), count) for times, count in counts.items()] + [("5+", often)]
    return [(label, count, 100 * count / all_sent if all_sent else 0) for label, count in rows]


def _bars(labels: list[str], *series: list[int]) -> BarChart:
    top = charts.scale_top(max((value for row in series for value in row), default=0))
    return BarChart(
        charts.grid(top),
        [
            charts.bars(row, labels, top=top, part=part, parts=len(series))
            for part, row in enumerate(series)
        ],
    )


def _times(days: list[tuple[datetime, Figures]]) -> LineChart:
    labels = [charting.day(at) for at, _row in days]
    rows = [[row.p50_s for _at, row in days], [row.p95_s for _at, row in days]]
    top = charts.scale_top(max((s for row in rows for s in row if s is not None), default=0) / 60)
    return LineChart(
        charts.grid(top * 60), [charts.line(row, labels, top=top * 60) for row in rows]
    )


def _ratios(days: list[tuple[datetime, Figures]]) -> LineChart:
    ratios = [row.refunds_per_operation for _at, row in days]
    most = max((ratio for ratio in ratios if ratio is not None), default=1.0)
    top = max(1.002, 1 + (most - 1) * 1.2)
    return LineChart(
        charts.grid(top, bottom=1.0),
        [
            charts.line(
                ratios,
                [charting.day(at) for at, _row in days],
                top=top,
                bottom=1.0,
                bad=[row.duplicates > 0 for _at, row in days],
            )
        ],
    )


def reason_name(reason: str) -> str:
    """Why operations are unknown, in words."""
    return str(wording.REASON.get(reason, reason))
