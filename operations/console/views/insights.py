"""Insights: how much is unknown, how long it stays unknown, and whether anyone was paid twice."""

from datetime import datetime, timedelta

from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from operations.console.insight_charts import charts_of
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, allows
from operations.queries.insights import read_insights
from operations.services.engine import default_engine

#: What can be asked for, in days.
RANGES = {
    "1d": (1, _("Today")),
    "7d": (7, _("7 days")),
    "30d": (30, _("30 days")),
    "90d": (90, _("90 days")),
}


@require_GET
@allows(Act.READ, narrows=True)
def insights(request: ConsoleRequest) -> HttpResponse:
    """Key figures and charts, each with its table; the filters stand in the address."""
    now = default_engine().clock()
    chosen = request.GET.get("range", "")
    chosen = chosen if chosen in RANGES else "7d"
    start = _start(now, RANGES[chosen][0])
    account, agent = _number(request.GET.get("account")), _number(request.GET.get("agent"))
    found = read_insights(
        now=now,
        start=start,
        zone=timezone.get_current_timezone_name(),
        account=account,
        agent=agent,
        within=request.accounts,
    )
    context = {
        "found": found,
        "ranges": [(key, name) for key, (_days, name) in RANGES.items()],
        "range": chosen,
        "range_name": RANGES[chosen][1],
        "account": account,
        "agent": agent,
        "is_filtered": account is not None or agent is not None,
        "waits": found.summed_at is None,
        **charts_of(found, now=now, start=start),
    }
    return answer(request, "operations/insights.html", context)


def _start(now: datetime, days: int) -> datetime:
    """Where the first of so many days begins, in the reader's time zone; today is the last."""
    today = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days - 1)


def _number(text: str | None) -> int | None:
    """An id of the address; what is none chooses nothing."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None
