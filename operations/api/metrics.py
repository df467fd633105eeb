"""`/metrics`, in the format that Prometheus scrapes."""

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from operations.queries.metrics import Metrics, NoticeMetrics, read_metrics
from operations.services.engine import default_engine


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """The state of the rows now; the same from every process."""
    registry = CollectorRegistry()
    registry.register(_Rows(read_metrics(now=default_engine().clock())))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _Rows(Collector):
    def __init__(self, found: Metrics) -> None:
        self._found = found

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One gauge for each figure."""
        found = self._found
        unresolved = GaugeMetricFamily(
            "reconcile_operations_unresolved", "Operations that are not settled", labels=["status"]
        )
        for status, count in found.unresolved.items():
            unresolved.add_metric([status], count)
        yield unresolved
        yield _gauge("operations_flagged", "Operations with an attention flag", found.flagged)
        flags = GaugeMetricFamily(
            "reconcile_operations_flags", "Operations that carry a flag", labels=["flag"]
        )
        for flag, count in found.flags.items():
            flags.add_metric([flag], count)
        yield flags
        yield _gauge(
            "needs_person_oldest_seconds",
            "How long the oldest operation has waited for a person",
            found.oldest_waiting_person_s,
        )
        yield _gauge("sends_in_flight", "Leases held or run out", found.leases)
        yield _gauge("checks_overdue", "Checks that are due now", found.checks_overdue)
        yield _gauge("webhooks_waiting", "Events that wait, up to 1,001", found.events_waiting)
        yield _gauge(
            "webhooks_failing", "Events that are tried again, up to 1,001", found.events_failing
        )
        yield _gauge(
            "webhooks_stuck", "Events that wait for a person, up to 1,001", found.events_stuck
        )
        handled = GaugeMetricFamily(
            "reconcile_webhooks_newest_handled",
            "What became of the newest 1,000 events",
            labels=["handling"],
        )
        for handling, count in found.newest_handlings.items():
            handled.add_metric([handling], count)
        yield handled
        yield _gauge(
            "webhooks_oldest_waiting_seconds", "Age of the oldest of them", found.oldest_event_s
        )
        if found.last_webhook_s is not None:
            yield _gauge(
                "webhooks_last_received_seconds",
                "Time since the last delivery",
                found.last_webhook_s,
            )
        yield from _notices(found.notices)


def _notices(found: NoticeMetrics) -> Iterator[GaugeMetricFamily]:
    yield _gauge("notices_waiting", "Notices not delivered yet", found.waiting)
    yield _gauge("notices_retried", "Of these, tried in vain already", found.retried)
    yield _gauge("notices_oldest_waiting_seconds", "Age of the oldest of them", found.oldest_s)
    yield _gauge("notices_failed", "Notices given up and still kept", found.failed)
    yield _gauge(
        "subscriptions_failing", "Subscriptions whose last try failed", found.subscriptions_failing
    )
    yield _gauge(
        "subscriptions_disabled", "Subscriptions that are disabled", found.subscriptions_disabled
    )


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"reconcile_{name}", text, value=value)
