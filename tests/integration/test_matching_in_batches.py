"""Events handled by the hundred end as they do one by one, in any order; a bad one is alone."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from operations.domain.statuses import Attention, Fact, Status, UnknownReason
from operations.models import (
    Account,
    AuditEntry,
    EventHandling,
    Evidence,
    InboxItem,
    Operation,
    Payment,
    ProviderRefund,
    collecting,
)
from operations.models.audit import first_break
from operations.models.statements import run
from operations.providers.stripe_events import event_facts
from operations.services.draining import drain
from operations.services.engine import Engine, default_engine
from operations.services.inbox import claim_items, finish, hold
from operations.services.ingesting import STORE, Delivery, columns_of, receive_event
from operations.services.matching import match_all

from .deliveries import event, signature
from .stage import ENVIRONMENT, SECRET

T0 = 1_795_000_000
NOW = datetime.fromtimestamp(T0 + 86_400, UTC)


@pytest.fixture
def engine() -> Engine:
    """An engine whose clock stands still."""
    return replace(
        default_engine(),
        clock=lambda: NOW,
        environment=ENVIRONMENT,
        livemode=False,
        webhook_secrets=(SECRET,),
    )


def account(name: str = "") -> Account:
    return Account.objects.get_or_create(
        name=name or "default", livemode=False, defaults={"provider_account": name}
    )[0]


def unknown(number: int) -> Operation:
    """An operation of 25.00 whose send ended in doubt."""
    payment = _payment(number)
    payment.save()
    operation = _operation(number, payment)
    operation.save(force_insert=True)
    operation.take(
        Fact.LEFT_UNDECIDED, now=NOW, unknown_reason=UnknownReason.BUDGET_SPENT, last_sent_at=NOW
    )
    return operation


def many_open(count: int) -> None:
    """So many operations of 25.00, each on a payment of its own."""
    payments = Payment.objects.bulk_create([_payment(number) for number in range(count)])
    Operation.objects.bulk_create(
        [_operation(number, payment) for number, payment in enumerate(payments)]
    )


def _payment(number: int) -> Payment:
    return Payment(
        account=account(),
        charge=f"ch_{number}",
        payment_intent=f"pi_{number}",
        currency="usd",
        captured=10_000,
        refunded=0,
        read_at=NOW,
    )


def _operation(number: int, payment: Payment) -> Operation:
    return Operation(
        id=UUID(int=number + 1),
        account_id=payment.account_id,
        payment=payment,
        order_id=f"order-{number}",
        amount=2_500,
        currency="usd",
        input_hash="0" * 64,
        environment=ENVIRONMENT,
        endpoint="/v1/refunds",
        idempotency_key=f"key-{number}",
        parameters={"charge": payment.charge, "amount": 2_500},
        created_at=NOW,
    )


def told(
    number: int, status: str, *, at: int = 0, name: str = "", **changes: Any
) -> dict[str, Any]:
    """An event about the refund of operation `number`, made `at` seconds after the first."""
    mark = {
        "reconcile_operation_id": str(UUID(int=number + 1)),
        "reconcile_environment": ENVIRONMENT,
    }
    refund = {
        "id": f"re_{number}",
        "object": "refund",
        "amount": 2_500,
        "currency": "usd",
        "status": status,
        "charge": f"ch_{number}",
        "payment_intent": f"pi_{number}",
        "created": T0,
        "metadata": mark,
    } | changes
    return event(
        name or f"evt_{uuid4().hex}",
        type="refund.updated",
        created=T0 + at,
        data={"object": refund},
    )


def receive(engine: Engine, events: Sequence[dict[str, Any]]) -> None:
    for one in events:
        raw = json.dumps(one).encode()
        receive_event(
            engine=engine,
            raw=raw,
            signature=signature(raw, at=NOW.timestamp()),
            endpoint_account="",
        )


def store(events: Sequence[dict[str, Any]]) -> None:
    """As `receive`, all in one statement; events that are there twice are delivered once."""
    unique = {one["id"]: one for one in events}
    deliveries = [
        Delivery(
            endpoint_account="",
            account="",
            facts=event_facts(one),
            raw=json.dumps(one).encode(),
            payload=json.dumps(one),
            received_at=NOW,
        )
        for one in unique.values()
    ]
    run(STORE, columns_of(deliveries))


def handle_all(engine: Engine, most: int = 500) -> None:
    while drain(engine=engine, most=most) is not None:
        pass


# One by one and in batches.


def stream(chance: Random, count: int = 50) -> list[dict[str, Any]]:
    """Events of every kind about eight operations, most of them more than once."""
    return [_one(chance, place) for place in range(count)]


def _one(chance: Random, place: int) -> dict[str, Any]:
    number, at, name = chance.randrange(8), chance.randrange(4), f"evt_{place}"
    status = chance.choice(["pending", "requires_action", "succeeded", "failed", "canceled"])
    kinds: list[Callable[[], dict[str, Any]]] = [
        lambda: told(number, status, at=at, name=name),
        lambda: told(number, status, at=at, name=name, failure_reason=chance.choice("ab")),
        lambda: told(number, status, at=at, name=name, metadata=None),
        lambda: told(number, "reversing", at=at, name=name),
        lambda: told(number, status, at=at, name=name, id=f"re_second_{number}"),
        lambda: told(number, status, at=at, name=name, amount=9_900),
        lambda: told(number, status, at=at, name=name, charge=None, payment_intent=None),
        lambda: told(number, status, at=at, name=name, id=f"re_other_{number}", metadata={}),
        lambda: told(number + 20, status, at=at, name=name),
        lambda: told(number, status, at=at, name=name) | {"livemode": True},
        lambda: told(number, status, at=at, name=name) | {"account": "acct_other"},
        lambda: (
            told(number, status, at=at, name=name, id=f"re_keyed_{number}", metadata={})
            | {"request": {"idempotency_key": f"key-{number}"}}
        ),
        lambda: event(name, type="payout.paid", data={"object": {"object": "payout"}}),
        lambda: _charge(number, status, at, name, chance),
        lambda: _dispute(number, at, name),
    ]
    return chance.choice([*kinds[:2] * 4, *kinds])()


def _charge(number: int, status: str, at: int, name: str, chance: Random) -> dict[str, Any]:
    """An event about a charge: with refunds of ours and of others, or with our call's key."""
    charge: dict[str, Any] = {"id": f"ch_{number}", "object": "charge", "amount": 10_000}
    if chance.random() < 0.5:
        numbers = chance.sample(range(8), 2)
        charge["refunds"] = {
            "data": [told(one, status)["data"]["object"] for one in [number, *numbers]]
        }
    request = {"idempotency_key": f"key-{number}"}
    return event(
        name, type="charge.refunded", created=T0 + at, data={"object": charge}, request=request
    )


def _dispute(number: int, at: int, name: str) -> dict[str, Any]:
    dispute = {
        "id": f"dp_{number}",
        "object": "dispute",
        "charge": f"ch_{number}",
        "amount": 10_000,
        "currency": "usd",
        "status": "needs_response",
        "is_charge_refundable": False,
    }
    return event(name, type="charge.dispute.created", created=T0 + at, data={"object": dispute})


def everything() -> dict[str, Any]:
    """All rows of all tables, with ids that a sequence gave replaced by what they stand for."""
    evidence = {
        str(row.pk): f"evidence {row.operation_id} {row.event_id} {row.summary}"
        for row in Evidence.objects.all()
    }
    drawn = {"id", "evidence_id", "previous_hash", "entry_hash", "message_id"}
    found: dict[str, Any] = {}
    for model in apps.get_app_config("operations").get_models():
        rows = []
        for values in model._default_manager.values():
            kept = {name: str(value) for name, value in values.items() if name not in drawn}
            if model is AuditEntry:
                kept["evidence"] = evidence.get(values["evidence_id"], "")
            rows.append(tuple(sorted(kept.items())))
        found[model.__name__] = sorted(rows)
    found["RefundReport"] = sorted(_reports())
    return found


def _reports() -> Iterator[tuple[str, ...]]:
    for refund in ProviderRefund.objects.prefetch_related("reports"):
        for report in refund.reports.all():
            yield (refund.provider_object_id, report.told_by, report.status, str(report.details))


@contextmanager
def undone() -> Iterator[None]:
    """What is written in here is taken back at its end."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(3))
def test_batches_end_exactly_as_events_one_by_one(engine: Engine, seed: int) -> None:
    chance = Random(seed)
    account("acct_other")
    operations = [unknown(number) for number in range(8)]
    for operation in chance.sample(operations, 2):
        operation.take(Fact.CLOSED_FAILED, now=NOW, failure_code="closed_by_person")
    receive(engine, stream(chance))
    ends = []

    for most in (1, 500):
        with undone():
            handle_all(engine, most)
            _assert_chains_hold()
            ends.append(everything())

    assert ends[0] == ends[1]
    assert len(set(ends[0]["EventHandling"])) > 40


def _assert_chains_hold() -> None:
    for operation in Operation.objects.all():
        chain = AuditEntry.objects.filter(operation_id=operation.pk).order_by("number")
        assert first_break(chain) is None


@pytest.mark.django_db
def test_hundreds_of_orders_of_the_same_reports_end_alike(engine: Engine) -> None:
    chance = Random(7)
    count = 200
    events = []
    many_open(count)
    for number in range(count):
        reports = [
            told(number, "pending", at=0),
            told(number, "succeeded", at=0),
            told(number, "succeeded", at=1, destination_details=_arn("first")),
            told(number, "succeeded", at=1, destination_details=_arn("second")),
            told(number, "failed", at=2, failure_reason="lost_or_stolen_card"),
            told(number, "failed", at=2, failure_reason="lost_or_stolen_card"),
        ]
        chance.shuffle(reports)
        events += [*reports, reports[chance.randrange(6)]]
    store(events)

    handle_all(engine)

    refunds = ProviderRefund.objects.prefetch_related("reports")
    ends = {
        (
            refund.status,
            str(refund.status_since),
            json.dumps(refund.details, sort_keys=True),
            tuple(sorted((report.status, str(report.details)) for report in refund.reports.all())),
        )
        for refund in refunds
    }
    assert len(refunds) == count
    assert len(ends) == 1
    (end,) = ends
    assert end[0] == "failed"
    assert json.loads(end[2])["reference"][1] == "second"
    assert set(Operation.objects.values_list("status", "provider_status")) == {("failed", "failed")}
    flags = Operation.objects.values_list("attention", flat=True)
    assert all(row in ([], [Attention.FAILED_AFTER_SUCCESS]) for row in flags)
    assert AuditEntry.objects.filter(action="provider_failed").count() == count


def _arn(text: str) -> dict[str, Any]:
    return {"type": "card", "card": {"reference": text}}


# One bad event.


@pytest.mark.django_db(transaction=True)
def test_one_event_that_cannot_be_handled_delays_no_other_of_its_batch(engine: Engine) -> None:
    operations = [unknown(number) for number in range(20)]
    receive(engine, [told(number, "succeeded", name=f"evt_{number}") for number in range(20)])

    with refused_for(operations[13]):
        drained = drain(engine=engine)

    assert drained is not None
    assert (drained.claimed, drained.handled, drained.failed) == (20, 19, 1)
    left = InboxItem.objects.get()
    assert left.provider_event_id == "evt_13"
    assert "out of order today" in left.error
    assert (left.failures, left.claimed_until) == (1, None)
    assert left.handle_after == NOW + timedelta(seconds=5)
    assert Operation.objects.filter(status=Status.SUCCEEDED).count() == 19
    later = replace(engine, clock=lambda: NOW + timedelta(minutes=1))
    drained = drain(engine=later)
    assert drained is not None
    assert drained.handled == 1
    assert Operation.objects.filter(status=Status.SUCCEEDED).count() == 20
    assert EventHandling.objects.count() == 20


@pytest.mark.django_db(transaction=True)
def test_event_that_kills_its_worker_gets_stuck_alone(engine: Engine) -> None:
    """A worker dies at `evt_3`, whatever else it has claimed: nothing of that claim ends."""
    operations = [unknown(number) for number in range(8)]
    receive(engine, [told(number, "succeeded", name=f"evt_{number}") for number in range(8)])
    killer = InboxItem.objects.get(provider_event_id="evt_3").pk

    for minute in range(0, 60, 2):
        at_work = replace(engine, clock=partial(_same, NOW + timedelta(minutes=minute)))
        while claims := claim_items(engine=at_work, most=500):
            if killer in [claim.event_pk for claim in claims]:
                continue  # Died. The others of its kind go on.
            with collecting.collecting(in_groups=True):
                for item, result in match_all(engine=at_work, items=hold(claims)):
                    finish(item, result.handling, now=at_work.clock(), operation=result.operation)

    left = InboxItem.objects.get()
    assert (left.pk, left.stuck_at is not None) == (killer, True)
    assert EventHandling.objects.count() == len(operations) - 1


@pytest.mark.django_db(transaction=True)
def test_event_that_kills_its_worker_gets_stuck_alone_while_claims_grow(engine: Engine) -> None:
    """Each run of the drain starts anew, so that none is claimed with it as often as it is."""
    for number in range(40):
        unknown(number)
    receive(engine, [told(number, "succeeded", name=f"evt_{number:02}") for number in range(40)])
    killer = InboxItem.objects.get(provider_event_id="evt_39").pk

    for minute in range(0, 60, 2):
        at_work, most_again = (
            replace(engine, clock=partial(_same, NOW + timedelta(minutes=minute))),
            1,
        )
        while claims := claim_items(engine=at_work, most=500, most_again=most_again):
            if killer in [claim.event_pk for claim in claims]:
                most_again = 1
                continue  # Died. Another run goes on.
            most_again *= 2
            with collecting.collecting(in_groups=True):
                for item, result in match_all(engine=at_work, items=hold(claims)):
                    finish(item, result.handling, now=at_work.clock(), operation=result.operation)

    left = InboxItem.objects.get()
    assert (left.pk, left.stuck_at is not None) == (killer, True)


@pytest.mark.django_db(transaction=True)
def test_what_an_outage_left_is_claimed_by_more_and_more(engine: Engine) -> None:
    for number in range(20):
        unknown(number)
    receive(engine, [told(number, "succeeded", name=f"evt_{number}") for number in range(20)])
    InboxItem.objects.update(failures=1, error="The store was down.")

    claimed, most_again = [], 1
    while drained := drain(engine=engine, most_again=most_again):
        most_again = drained.most_again
        claimed.append(drained.claimed)

    assert claimed == [1, 2, 4, 8, 5]
    assert Operation.objects.filter(status=Status.SUCCEEDED).count() == 20


@pytest.mark.django_db(transaction=True)
def test_one_that_fails_again_is_tried_alone(engine: Engine) -> None:
    operations = [unknown(number) for number in range(3)]
    receive(engine, [told(number, "succeeded", name=f"evt_{number}") for number in range(3)])
    InboxItem.objects.update(failures=1, error="The store was down.")

    with refused_for(operations[0]):
        drained = drain(engine=engine, most_again=8)

    assert drained is not None
    assert (drained.claimed, drained.failed, drained.most_again) == (3, 1, 1)


def _same(now: datetime) -> datetime:
    return now


@contextmanager
def refused_for(operation: Operation) -> Iterator[None]:
    """The store takes no evidence about this operation meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse_today() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'out of order today'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER refuse_today BEFORE INSERT ON operations_evidence FOR EACH ROW"
            f" WHEN (NEW.operation_id = '{operation.pk}') EXECUTE FUNCTION refuse_today()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER refuse_today ON operations_evidence")
            cursor.execute("DROP FUNCTION refuse_today()")


# What it costs.


@pytest.mark.django_db(transaction=True)
def test_hundred_events_take_as_many_statements_as_ten(engine: Engine) -> None:
    def statements(first: int, count: int) -> int:
        numbers = range(first, first + count)
        for number in numbers:
            unknown(number)
        receive(engine, [told(number, "succeeded") for number in numbers])
        with CaptureQueriesContext(connection) as sent:
            handle_all(engine)
        return len(sent.captured_queries)

    assert statements(0, 10) == statements(10, 100)
    assert Operation.objects.filter(status=Status.SUCCEEDED).count() == 110
