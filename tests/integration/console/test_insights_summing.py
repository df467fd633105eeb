"""The counts behind the insights: kept up with what changes, and the same when made anew."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from operations import jobs
from operations.domain.durations import bucket_of
from operations.models import (
    AuditEntry,
    HourCount,
    HourToSum,
    Operation,
    ProviderRefund,
    SummingState,
)
from operations.services.closing import approve
from operations.services.looking_up import look_up

from .scenes import JOB, PRIYA, Scenes, fresh

pytestmark = pytest.mark.django_db(transaction=True)

Counts = Counter[tuple[datetime, int, int | None, str, str, int]]


def counted() -> Counts:
    rows = HourCount.objects.values_list(
        "hour", "account_id", "agent_id", "reason", "measure", "bucket", "count"
    )
    return Counter({tuple(row[:6]): row[6] for row in rows})  # type: ignore[misc]


def hour_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def counted_by_hand() -> Counts:
    """What the rows of the operations say, without any SQL of ours."""
    found: Counts = Counter()
    for row in Operation.objects.all():
        whose = (row.account_id, row.opened_by_id)
        refunds = ProviderRefund.objects.filter(operation=row).exclude(
            status__in=["failed", "canceled"]
        )
        found[hour_of(row.created_at), *whose, "", "sends", row.attempts_made] += 1
        found[hour_of(row.created_at), *whose, "", "refunds", refunds.count()] += 1
        since, reason = None, ""
        for entry in AuditEntry.objects.filter(operation_id=row.pk).order_by("number"):
            before, after = entry.before.get("status"), entry.after.get("status")
            if after == "unknown" != before:
                since, reason = entry.at, entry.after["unknown_reason"]
                found[hour_of(entry.at), *whose, reason, "unknown", 0] += 1
            elif before == "unknown" != after and since:
                bucket = bucket_of((entry.at - since).total_seconds())
                found[hour_of(entry.at), *whose, reason, "resolved", bucket] += 1
    return found


def something_happens(scenes: Scenes, chance: random.Random) -> None:
    """One new operation, or the end of one that is unknown."""
    ago = chance.choice([0, 0, 600, 4_000, 90_000])
    unknown = list(Operation.objects.filter(status="unknown").order_by("id"))
    match chance.choice(["sent", "refused", "lost", "lost", "duplicate", "closed", "looked up"]):
        case "sent":
            scenes.succeeded(ago=ago)
        case "refused":
            scenes.refused(ago=ago)
        case "lost":
            scenes.unknown(made=chance.random() < 0.7, ago=ago)
        case "duplicate":
            scenes.duplicate(ago=ago)
        case "closed" if unknown:
            operation = chance.choice(unknown)
            approve(
                engine=scenes.engine(),
                proposal_id=scenes.proposed(operation).pk,
                revision=fresh(operation).revision,
                note="I agree: the dashboard shows only the capture.",
                actor=PRIYA,
            )
        case "looked up" if unknown:
            look_up(engine=scenes.engine(), operation_id=chance.choice(unknown).pk, actor=JOB)


@pytest.mark.parametrize("seed", [1, 2])
def test_counting_what_changed_gives_what_counting_everything_gives(
    scenes: Scenes, seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(14):
        something_happens(scenes, chance)
        if chance.random() < 0.4:
            jobs.sum_up()
    jobs.sum_up()
    kept = counted()
    assert kept == counted_by_hand()

    jobs.sum_up()
    assert counted() == kept

    call_command("sum_up", "--rebuild", stdout=StringIO())
    assert counted() == kept


def test_counts_that_are_wrong_are_right_after_a_rebuild(scenes: Scenes) -> None:
    scenes.unknown()
    jobs.sum_up()
    kept = counted()
    HourCount.objects.update(count=7)
    HourCount.objects.create(
        hour=datetime(2020, 1, 1, tzinfo=UTC),
        account=Operation.objects.get().account,
        measure="unknown",
        bucket=0,
        count=3,
    )

    call_command("sum_up", "--rebuild", stdout=StringIO())

    assert counted() == kept


def test_the_job_reads_on_from_where_it_was(scenes: Scenes) -> None:
    scenes.succeeded(ago=7_200)
    jobs.sum_up()
    state = SummingState.objects.get()
    assert state.audit_entry == AuditEntry.objects.latest("id").pk

    # What is young is read again: an entry with a smaller number may be committed after it.
    scenes.succeeded()
    jobs.sum_up()
    assert SummingState.objects.get().audit_entry == state.audit_entry
    assert not HourToSum.objects.exists()


@pytest.mark.parametrize("wrong", ["measure = 'guesses'", "count = 0"])
def test_the_database_refuses_a_count_that_means_nothing(scenes: Scenes, wrong: str) -> None:
    scenes.succeeded()
    jobs.sum_up()

    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE operations_hourcount SET {wrong}")


def test_the_database_refuses_a_second_count_and_a_second_state(scenes: Scenes) -> None:
    scenes.succeeded(ago=timedelta(days=1).total_seconds())
    jobs.sum_up()
    for table, columns in (
        ("hourcount", "hour, account_id, agent_id, reason, measure, bucket, count"),
        ("summingstate", "id, audit_entry, evidence, summed_at"),
    ):
        again = columns.replace("id, audit", "2, audit")
        with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO operations_{table} ({columns}) SELECT {again} FROM operations_{table}"
            )
