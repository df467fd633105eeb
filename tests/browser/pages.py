"""Every page of the console, by name: what axe looks at and what the pictures show."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.test import RequestFactory
from django.urls import URLPattern, reverse

from operations.console import urls

from .world import World


class Shown(NamedTuple):
    """One page. `needs` are the names in the world that stand for the address's arguments."""

    name: str
    url: str
    needs: tuple[tuple[str, str], ...] = ()
    query: str = ""

    def path(self, world: World) -> str:
        """Its address in this world."""
        given = {argument: world[key] for argument, key in self.needs}
        return reverse(self.url, kwargs=given) + self.query


def _at(name: str, url: str, query: str = "", **needs: str) -> Shown:
    return Shown(name, url, tuple(needs.items()), query)


PAGES: tuple[Shown, ...] = (
    _at("queue", "queue"),
    _at("queue-second", "queue", "?view=second"),
    _at("queue-all", "queue", "?view=all"),
    _at("queue-filtered", "queue", "?status=failed"),
    _at("queue-page-end", "queue", "?view=all&after=n~20000101T000000.000000~0"),
    _at("search-nothing", "search", "?q=nothing"),
    _at("health", "health-strip"),
    _at("keys-help", "keys-help"),
    _at("operation", "operation", operation_id="operation_id"),
    _at("operation-now", "operation-now", operation_id="operation_id"),
    _at("operation-timeline", "operation-timeline", operation_id="operation_id"),
    _at("operation-audit", "operation-audit", operation_id="settled_id"),
    _at("operation-conflict", "operation", operation_id="settled_id"),
    _at("operation-proposal", "operation", operation_id="waiting_id"),
    _at("operation-hostile", "operation", operation_id="hostile_id"),
    _at("operation-hostile-audit", "operation-audit", operation_id="hostile_id"),
    _at("close", "close", operation_id="operation_id"),
    _at("event-raw", "event-raw", operation_id="operation_id", anchor="attempt"),
    _at("close-reference", "close-reference", "?reference=re_1", operation_id="operation_id"),
    _at("receipt", "receipt", operation_id="settled_id"),
    _at("receipt-of", "receipt-of", operation_id="settled_id", number="decision"),
    _at("reissue", "reissue", operation_id="failed_id"),
    _at("reopen", "reopen", operation_id="settled_id"),
    _at("proposals", "proposals"),
    _at("orphans", "orphans"),
    _at("orphans-totals", "orphans", "?view=totals"),
    _at("orphan", "orphan", refund_id="refund_id"),
    _at("orphans-events", "orphans", "?view=events"),
    _at("orphan-event", "orphan-event", orphan_id="orphan_event_id"),
    _at("orphan-total", "orphan-total", discrepancy_id="discrepancy_id"),
    _at("money", "money"),
    _at("inbox", "inbox"),
    _at("backfill", "backfill"),
    _at("bulk-runs", "bulk"),
    _at("bulk-preview", "bulk-run", bulk_id="bulk_preview_id"),
    _at("bulk-waiting", "bulk-run", bulk_id="bulk_waiting_id"),
    _at("bulk-running", "bulk-run", bulk_id="bulk_running_id"),
    _at("bulk-ended", "bulk-run", bulk_id="bulk_ended_id"),
    _at("reports", "reports"),
    _at("report", "report", report_id="report_id"),
    _at("notices", "subscriptions"),
    _at("subscription", "subscription", subscription_id="subscription_id"),
    _at("delivery", "delivery", delivery_id="delivery_id"),
    _at("policies", "policies"),
    _at("audit-trail", "audit-trail"),
    _at("insights", "insights"),
    _at("settings", "settings"),
    _at("accounts", "accounts"),
    _at("account", "account", account_id="account_id"),
    _at("keys", "keys"),
    _at("people", "people"),
    _at("person", "person", person_id="person_id"),
)

#: Answers to a GET that are no pages.
FILES = {"report-results", "audit-export", "bulk-results"}


def unlisted() -> list[str]:
    """The console's addresses that answer a GET and are not listed above."""
    listed = {page.url for page in PAGES} | FILES
    return sorted(
        pattern.name or str(pattern.pattern)
        for pattern in _patterns()
        if pattern.name not in listed and _answers_a_get(pattern)
    )


def _patterns() -> Iterator[URLPattern]:
    for pattern in urls.urlpatterns:
        assert isinstance(pattern, URLPattern)
        yield pattern


def _answers_a_get(pattern: URLPattern) -> bool:
    """Whether more than "post, please" comes back. Who may do what is asked only after that."""
    request: Any = RequestFactory().get("/")
    try:
        return bool(pattern.callback(request).status_code != 405)
    except Exception:
        return True
