"""The console's addresses. Every fragment is a full page under its own address too."""

from django.urls import URLPattern, URLResolver, path

from operations.console.views import (
    backfill,
    closing,
    notices,
    operation,
    orphans,
    policies,
    queue,
    reports,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", queue.queue, name="queue"),
    path("search/", queue.search, name="search"),
    path("notices/", notices.subscriptions, name="subscriptions"),
    path("notices/<uuid:subscription_id>/", notices.subscription, name="subscription"),
    path("notices/<uuid:subscription_id>/secret/", notices.roll_secret, name="roll-secret"),
    path("notices/<uuid:subscription_id>/disable/", notices.disable, name="disable-subscription"),
    path("notices/<uuid:subscription_id>/enable/", notices.enable, name="enable-subscription"),
    path("notices/deliveries/<int:delivery_id>/", notices.delivery, name="delivery"),
    path("notices/deliveries/<int:delivery_id>/again/", notices.send_again, name="send-again"),
    path("health-strip/", queue.health_strip, name="health-strip"),
    path("backfill/", backfill.backfill, name="backfill"),
    path("backfill/start/", backfill.start, name="backfill-start"),
    path("backfill/<int:run_id>/go-on/", backfill.resume, name="backfill-go-on"),
    path("reports/", reports.reports, name="reports"),
    path("reports/upload/", reports.upload, name="report-upload"),
    path("reports/<int:report_id>/", reports.report, name="report"),
    path("reports/<int:report_id>/apply/", reports.apply, name="report-apply"),
    path("reports/<int:report_id>/results.csv", reports.report_results, name="report-results"),
    path("operations/<uuid:operation_id>/", operation.operation, name="operation"),
    path(
        "operations/<uuid:operation_id>/timeline/",
        operation.operation,
        {"tab": "timeline"},
        name="operation-timeline",
    ),
    path(
        "operations/<uuid:operation_id>/audit/",
        operation.operation,
        {"tab": "audit"},
        name="operation-audit",
    ),
    path("operations/<uuid:operation_id>/look-up/", operation.look_up, name="look-up"),
    path(
        "operations/<uuid:operation_id>/clear-attention/",
        closing.clear_attention,
        name="clear-attention",
    ),
    path("operations/<uuid:operation_id>/close/", closing.close, name="close"),
    path("operations/<uuid:operation_id>/receipt/", closing.receipt, name="receipt"),
    path(
        "operations/<uuid:operation_id>/proposals/<int:proposal_id>/approve/",
        closing.approve,
        name="approve",
    ),
    path(
        "operations/<uuid:operation_id>/proposals/<int:proposal_id>/reject/",
        closing.reject,
        name="reject",
    ),
    path("orphans/", orphans.orphans, name="orphans"),
    path("orphans/refunds/<int:refund_id>/", orphans.orphan, name="orphan"),
    path("orphans/refunds/<int:refund_id>/link/", orphans.link, name="orphan-link"),
    path("orphans/refunds/<int:refund_id>/outside/", orphans.outside, name="orphan-outside"),
    path("orphans/totals/<int:discrepancy_id>/", orphans.total, name="orphan-total"),
    path("money/", orphans.money, name="money"),
    path("policies/", policies.policies, name="policies"),
]
