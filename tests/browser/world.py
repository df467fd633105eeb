"""One of everything that the console shows: what every page is looked at with."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from operations.domain.bulk import BulkAction, BulkLimits
from operations.models import (
    WORKER,
    AuditEntry,
    BackfillRun,
    Delivery,
    Discrepancy,
    Heartbeat,
    InboxItem,
    OrphanEvent,
    ProviderRefund,
    ReportFile,
    Subscription,
)
from operations.services.adding_up import compare_total
from operations.services.backfilling import fetch_events
from operations.services.bulk import Begin, begin
from operations.services.bulk_previewing import preview
from operations.services.bulk_running import run_bulk
from operations.services.draining import drain
from operations.services.engine import Engine, default_engine
from operations.services.looking_up import look_up
from operations.services.notifying import deliver_due
from operations.services.report_reading import read_report
from operations.services.summing import mark_changed_hours, mark_every_hour, sum_next_hour
from tests.integration.console.scenes import DANA, JOB, PASSWORD, Scenes, person
from tests.integration.deliveries import deliver, event
from tests.integration.reports import export, known_line_of, line
from tests.integration.stage import SECRET

#: Text from outside at its worst: markup, a direction override, invisible and endless words.
HOSTILE = "<script>alert(1)</script>\u202eegrahc\u200b\u2066" + "W" * 180
ENDLESS = "9" * 10_000

World = dict[str, Any]


def make_world(scenes: Scenes, settings: Any) -> World:
    """Fill an empty database. Returns the ids by which the pages are reached."""
    settings.RECONCILE = _settings(settings.RECONCILE)
    default_engine.cache_clear()
    admin = person("admin", "Maya Kline", password=PASSWORD)
    client = Client()
    client.force_login(admin)
    world: World = {"person_id": person("operator", "Dana Ruiz").pk}
    world |= _operations(scenes)
    world |= _notices(client, scenes)
    world |= _inbox(scenes, world["operation_id"])
    world |= _files_and_runs(client, scenes)
    world |= _bulk(scenes, admin, world)
    mark_every_hour()
    mark_changed_hours(engine=default_engine())
    while sum_next_hour():
        pass
    Heartbeat.beat(WORKER, now=datetime.now(UTC))
    return world


def _settings(config: Any) -> Any:
    from ipaddress import ip_network

    notices = replace(config.notices, allow_networks=(ip_network("127.0.0.0/8"),))
    return replace(config, stripe_webhook_secrets=(SECRET,), notices=notices)


def _operations(scenes: Scenes) -> World:
    unknown = scenes.unknown(order="4420", amount=11_200, made=False, again=1, looked=2, ago=4_000)
    scenes.unknown(order="4417", amount=3_800, made=True, ago=80_000)
    scenes.window_closed(order="4402", amount=4_200, currency="jpy")
    conflict = scenes.conflict(order="4391", amount=6_450)
    waiting = scenes.unknown(order="4388", made=False, amount=5_120, currency="kwd", ago=900)
    proposal = scenes.proposed(waiting)
    scenes.mismatch(order="4371", amount=2_500)
    scenes.duplicate(order="4366", amount=1_900)
    refused = scenes.refused(order="4360", amount=900)
    scenes.processing(order="4355", amount=7_700, currency="eur")
    scenes.succeeded(order="4350", amount=5_000)
    hostile = scenes.unknown(order=HOSTILE, reference=HOSTILE[:60], made=False, amount=99)
    scenes.proposed(hostile, note=HOSTILE + "n" * 3_500)
    return {
        "operation_id": unknown.pk,
        "attempt": "attempt-1",
        "account_id": unknown.account_id,
        "settled_id": conflict.pk,
        "decision": AuditEntry.objects.get(operation_id=conflict.pk, action="closed_failed").number,
        "failed_id": refused.pk,
        "waiting_id": waiting.pk,
        "proposal_id": proposal.pk,
        "hostile_id": hostile.pk,
        **_orphans(scenes),
    }


def _orphans(scenes: Scenes) -> World:
    beside = scenes.unknown(order="4340", made=False, amount=4_400, ago=300)
    charge = beside.payment.charge
    made = scenes.control.refund_outside(charge, amount=4_400, metadata={"note": HOSTILE})
    look_up(engine=scenes.engine(), operation_id=beside.pk, actor=JOB)
    compare_total(
        payment=beside.payment,
        provider_total=6_400,
        listed_total=4_400,
        complete=True,
        now=scenes.engine().clock(),
    )
    return {
        "refund_id": ProviderRefund.objects.get(provider_object_id=made).pk,
        "discrepancy_id": Discrepancy.objects.latest("pk").pk,
    }


def _bulk(scenes: Scenes, admin: User, world: World) -> World:
    """A run in each of its states, the ended one with several results."""
    maya = replace(DANA, id=str(admin.pk), name="Maya Kline")
    engine = scenes.engine()
    alone = replace(engine, bulk_alone=BulkLimits(rows=0))
    absent = [scenes.unknown(made=False, looked=1, ago=600, amount=990 + n) for n in range(2)]
    unlooked = scenes.unknown(made=False, order=HOSTILE, reference="bulk", currency="eur")
    seen = [row.pk for row in (*absent, unlooked)]
    seen += [world["settled_id"], world["waiting_id"], world["hostile_id"]]

    def run(with_engine: Engine, *ids: UUID, begun: bool = True) -> int:
        made = preview(engine=engine, action=BulkAction.CLOSE_FAILED, ids=ids, actor=maya)
        if with_engine is alone:
            made = preview(engine=alone, action=BulkAction.CLOSE_FAILED, ids=ids, actor=DANA)
        if begun:
            said = Begin(count=made.acts, note=HOSTILE, kind="dashboard", reference=HOSTILE[:200])
            actor = DANA if with_engine is alone else maya
            begin(engine=with_engine, run_id=made.pk, saying=said, actor=actor)
        return made.pk

    ended = run(engine, *seen)
    waiting = run(alone, seen[0], seen[1])
    previewed = run(engine, *seen, begun=False)
    running = run(engine, seen[1], seen[2])
    while run_bulk(engine=engine, run_id=ended, is_over=lambda: False):
        pass
    return {
        "bulk_ended_id": ended,
        "bulk_waiting_id": waiting,
        "bulk_preview_id": previewed,
        "bulk_running_id": running,
    }


def _notices(client: Client, scenes: Scenes) -> World:
    # Nobody listens there: the deliveries fail.
    client.post(
        reverse("subscriptions"),
        {"address": "http://127.0.0.1:9/hooks/reconcile", "name": HOSTILE[:80]},
    )
    scenes.unknown(order="4333", made=False)
    deliver_due(engine=default_engine())
    return {
        "subscription_id": Subscription.objects.latest("created_at").pk,
        "delivery_id": Delivery.objects.latest("pk").pk,
    }


def _inbox(scenes: Scenes, operation_id: UUID) -> World:
    odd = event("evt_odd")
    odd["data"]["object"]["metadata"] = {"note": HOSTILE, "cart": ENDLESS}
    charge = {"id": HOSTILE[:60], "object": "charge", "amount_refunded": 500, "currency": "usd"}
    orphan = event("evt_orphan", type="charge.refunded", data={"object": charge})
    assert deliver(orphan).status_code == 200
    drain(engine=default_engine())
    for each in (event("evt_a"), odd):
        answer = deliver(each)
        assert answer.status_code == 200, answer.content
    stuck = InboxItem.objects.order_by("pk")
    stuck.update(stuck_at=datetime.now(UTC), failures=16, error=HOSTILE)
    first = stuck.first()
    assert first is not None
    return {"event_pk": first.event_id, "orphan_event_id": OrphanEvent.objects.get().pk}


def _files_and_runs(client: Client, scenes: Scenes) -> World:
    ours = scenes.unknown(order="4320")
    raw = export([known_line_of(ours, "re_ours"), line(HOSTILE[:60], currency="zz"), line("re_x")])
    client.post(
        reverse("report-upload"),
        {"file": SimpleUploadedFile(f"{'refunds' * 12}.csv", raw, content_type="text/csv")},
    )
    report = ReportFile.objects.latest("pk")
    read_report(engine=default_engine(), report_id=report.pk, is_over=lambda: False)
    client.post(reverse("backfill-start"), {"since": "6h"})
    run = BackfillRun.objects.latest("pk")
    fetch_events(engine=default_engine(), run_id=run.pk, is_over=lambda: False)
    return {"report_id": report.pk, "run_id": run.pk}
