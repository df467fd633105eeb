"""The recorded webhooks and provider answers, over the real view and the real SDK."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from operations.domain.privacy import kept
from operations.domain.statuses import Attention, Status, UnknownReason
from operations.models import (
    AuditEntry,
    EventHandling,
    Evidence,
    EvidenceSource,
    Handling,
    InboxItem,
    Operation,
    ProviderRefund,
    WebhookEvent,
)
from operations.providers.stripe_events import event_facts
from operations.services.draining import handle_next_event
from operations.services.engine import Engine, default_engine
from operations.services.looking_up import LookupResult, look_up
from operations.services.sending import send_until_decided

from .cases import CASES, ENVIRONMENT, Recording, provider_answer, webhook
from .deliveries import deliver
from .inboxes import handled
from .recorded import Recorded, recorded_provider
from .stage import JOB, SECRET, MovingClock, engine_for


@pytest.fixture(autouse=True)
def _environment_of_the_cases(settings: Any) -> Iterator[None]:
    settings.RECONCILE = replace(
        settings.RECONCILE, environment=ENVIRONMENT, stripe_webhook_secrets=(SECRET,)
    )
    default_engine.cache_clear()
    yield
    default_engine.cache_clear()


def receive(name: str) -> EventHandling | InboxItem:
    """Deliver a recorded webhook and handle it; what became of it."""
    raw = webhook(name)
    response = deliver(raw)
    assert response.status_code == 200, response.content
    while handle_next_event(engine=default_engine()) is not None:
        pass
    row = WebhookEvent.objects.get(event_id=json.loads(raw)["id"])
    assert row.payload == kept(json.loads(raw))
    if row.payload == json.loads(raw):
        assert bytes(row.raw) == raw
    else:
        assert json.loads(bytes(row.raw)) == row.payload
    became = InboxItem.objects.filter(pk=row.pk).first() or row.handlings.get()
    assert became.error == ""
    return became


@dataclass(frozen=True, kw_only=True)
class Case:
    """Webhooks in their order of arrival, and how their operation stands then."""

    webhooks: tuple[str, ...]
    operation: str
    status: Status
    handling: Handling
    refund: str = ""
    attention: tuple[Attention, ...] = ()
    changes: int = 0
    more: dict[str, str] = field(default_factory=dict)


APPLIED, NO_CHANGE, NOT_OURS = Handling.APPLIED, Handling.NO_CHANGE, Handling.NOT_OURS
UNKNOWN, PROCESSING = Status.UNKNOWN, Status.PROCESSING
SUCCEEDED, FAILED = Status.SUCCEEDED, Status.FAILED


def proven(webhooks: str, operation: str, refund: str, **more: Any) -> Case:
    """Unknown before, succeeded after."""
    given: dict[str, Any] = {"status": SUCCEEDED, "handling": APPLIED, "changes": 1} | more
    return Case(webhooks=tuple(webhooks.split()), operation=operation, refund=refund, **given)


def unchanged(webhooks: str, operation: str, handling: Handling, **more: Any) -> Case:
    """Unknown before and after."""
    given: dict[str, Any] = {"status": UNKNOWN} | more
    names = tuple(webhooks.split())
    return Case(webhooks=names, operation=operation, handling=handling, **given)


def failed_later(webhooks: str, handling: Handling) -> Case:
    """a2: succeeded before, failed at the provider afterwards, told once."""
    return Case(
        webhooks=tuple(webhooks.split()),
        operation="a2",
        status=FAILED,
        handling=handling,
        refund="re_3FAKER006",
        attention=(Attention.FAILED_AFTER_SUCCESS,),
        changes=1,
        more={"failure_code": "failed"},
    )


WEBHOOKS = {
    "created and succeeded": proven("01", "a1", "re_3FAKER001"),
    "delivered again": proven("01 02", "a1", "re_3FAKER001"),
    "only the bank's reference": proven("01 03", "a1", "re_3FAKER001", handling=NO_CHANGE),
    "the reference first": proven("03 01", "a1", "re_3FAKER001", handling=NO_CHANGE),
    "one change as two events": proven("01 03 04", "a1", "re_3FAKER001", handling=NO_CHANGE),
    "the charge says it too": proven("01 05", "a1", "re_3FAKER001", handling=NO_CHANGE),
    "the charge says it first": unchanged("05", "a1", Handling.NEEDS_LOOKUP),
    "failed days later": failed_later("06", APPLIED),
    "failed, told twice": failed_later("06 07", NO_CHANGE),
    "failed, and an older success comes last": failed_later("06 08", NO_CHANGE),
    "failed, in order": failed_later("08 06", APPLIED),
    "two equal parts, one ours": proven("09", "a3", "re_3FAKER009"),
    "no refunds but our request key": unchanged("10", "a4", Handling.NEEDS_LOOKUP),
    "the same amount from the dashboard": unchanged("11", "a5", NOT_OURS),
    "very old, refunds without ids": unchanged("12", "a6", NOT_OURS),
    "very old, the request is a text": unchanged("13", "a6", NOT_OURS),
    "pending": proven("14", "b1", "pyr_3FAKER014", status=PROCESSING),
    "pending, then succeeded": proven("14 15", "b1", "pyr_3FAKER014", changes=2),
    "requires action": Case(
        webhooks=("16",),
        operation="b2",
        status=PROCESSING,
        handling=APPLIED,
        refund="re_3FAKER016",
        changes=1,
        more={"provider_status": "requires_action"},
    ),
    "canceled": Case(
        webhooks=("17",),
        operation="b3",
        status=FAILED,
        handling=APPLIED,
        refund="re_3FAKER017",
        changes=1,
        more={"failure_code": "canceled"},
    ),
    "one second, pending first": proven("18a 18b", "b4", "re_3FAKER018", changes=2),
    "one second, succeeded first": proven("18b 18a", "b4", "re_3FAKER018", handling=NO_CHANGE),
    "yen": proven("19", "c1", "re_3FAKER019"),
    "metadata null, our request key": proven("22", "d1", "re_3FAKER022"),
    "metadata missing": unchanged("23", "d2", NOT_OURS),
    "metadata empty, from the dashboard": unchanged("24", "d3", NOT_OURS),
    "our metadata, another environment": unchanged("26", "d5", Handling.OTHER_ENVIRONMENT),
    "our metadata, another amount": unchanged(
        "27", "d6", Handling.MISMATCH, attention=(Attention.MISMATCH,), changes=1
    ),
    "hostile texts": proven("29", "d8", "re_3FAKER029"),
    "no charge": proven("32", "e1", "re_3FAKER032"),
    "no payment intent": proven("33", "e2", "re_3FAKER033"),
    "a status of the future": Case(
        webhooks=("34",),
        operation="e3",
        status=SUCCEEDED,
        handling=Handling.NEEDS_LOOKUP,
        refund="re_3FAKER034",
        more={"provider_status": "succeeded"},
    ),
    "a connected account": proven("35", "f1", "re_3FAKER035"),
    "another connected account": unchanged(
        "36", "f2", Handling.MISMATCH, attention=(Attention.MISMATCH,), changes=1
    ),
    "live, on a test installation": unchanged("37", "f3", Handling.WRONG_MODE),
    "succeeded after a person found that it failed": Case(
        webhooks=("41",),
        operation="g1",
        status=FAILED,
        handling=APPLIED,
        refund="re_3FAKER041",
        attention=(Attention.CONFLICT,),
        changes=1,
        more={"failure_code": "closed_by_person", "provider_status": "succeeded"},
    ),
    "a hundred refunds of more": proven("48", "h1", ""),
}


@pytest.mark.django_db
@pytest.mark.parametrize("case", WEBHOOKS.values(), ids=WEBHOOKS.keys())
def test_webhooks_bring_their_operation_where_they_should(case: Case) -> None:
    Recording.named(case.operation).insert()
    before = AuditEntry.objects.count()

    rows = [receive(name) for name in case.webhooks]

    operation = Operation.objects.get()
    assert operation.status == case.status
    assert rows[-1].handling == case.handling
    assert operation.attention == list(case.attention)
    assert AuditEntry.objects.count() - before == case.changes
    assert (operation.needs_person_since is not None) == (
        operation.status == UNKNOWN or bool(case.attention)
    )
    if case.status == SUCCEEDED or case.refund:
        assert operation.provider_object_id == case.refund or case.operation == "h1"
        assert operation.provider_object_id != ""
    else:
        assert operation.provider_object_id == ""
    for name, value in case.more.items():
        assert getattr(operation, name) == value, name


@pytest.mark.django_db
def test_audit_entry_names_the_event_and_its_evidence() -> None:
    Recording.named("a1").insert()

    row = receive("01")

    entry = AuditEntry.objects.get()
    evidence = Evidence.objects.get()
    assert (entry.actor_kind, entry.actor_id) == ("webhook", "evt_3FAKEE001")
    assert (entry.action, entry.evidence_id) == ("provider_succeeded", str(evidence.pk))
    assert (entry.before["status"], entry.after["status"]) == ("unknown", "succeeded")
    assert (evidence.source, evidence.event_id) == (EvidenceSource.WEBHOOK, row.event_id)


@pytest.mark.django_db
@pytest.mark.parametrize("order", list(itertools.permutations(["01", "03", "04", "05"])))
def test_events_of_one_refund_end_alike_in_any_order(order: tuple[str, ...]) -> None:
    Recording.named("a1").insert()

    for name in order:
        receive(name)
    receive(order[0])

    operation = Operation.objects.get()
    assert (operation.status, operation.provider_object_id) == (SUCCEEDED, "re_3FAKER001")
    assert AuditEntry.objects.count() == Evidence.objects.count() == 1
    assert WebhookEvent.objects.count() == 4


@pytest.mark.django_db
def test_banks_reference_is_stored_and_the_outcome_stays_as_it_was() -> None:
    Recording.named("a1").insert()
    receive("01")
    before = Operation.objects.values().get()

    receive("03")
    receive("04")

    assert Operation.objects.values().get() == before
    refund = ProviderRefund.objects.get()
    assert refund.detail("reference") == "000000000000000000000000"
    assert [(report.told_by, report.details) for report in refund.reports.order_by("id")] == [
        ("evt_3FAKEE001", {}),
        ("evt_3FAKEE003", {"reference": "000000000000000000000000"}),
    ]


@pytest.mark.django_db
def test_time_until_which_the_customer_may_act_is_kept() -> None:
    Recording.named("b2").insert()

    receive("16")

    assert ProviderRefund.objects.get().detail("action_expires_at") == "1798888000"


@pytest.mark.django_db
def test_failure_is_told_with_its_reason_and_time_in_any_order() -> None:
    Recording.named("a2").insert()

    for name in ("07", "08", "06"):
        receive(name)

    refund = ProviderRefund.objects.get()
    assert (refund.status, refund.detail("failure_reason") != "") == ("failed", True)
    assert (
        refund.status_since == WebhookEvent.objects.get(event_id__endswith="06").provider_created_at
    )
    assert set(refund.reports.values_list("status", flat=True)) == {"failed", "succeeded"}


@pytest.mark.django_db
def test_refund_that_contradicts_its_operation_is_kept_and_tied_to_none() -> None:
    Recording.named("d6").insert()

    receive("27")

    refund = ProviderRefund.objects.get()
    assert (refund.operation, refund.amount, refund.reports.count()) == (None, 250_000, 1)


@pytest.mark.django_db
@pytest.mark.parametrize("order", list(itertools.permutations(["06", "07", "08"])))
def test_failure_after_success_wins_in_any_order(order: tuple[str, ...]) -> None:
    Recording.named("a2").insert()

    for name in order:
        receive(name)

    operation = Operation.objects.get()
    assert operation.status == FAILED
    assert operation.attention == [Attention.FAILED_AFTER_SUCCESS]
    assert AuditEntry.objects.count() == 1


@pytest.mark.django_db
def test_refund_without_metadata_is_matched_by_its_known_id() -> None:
    Recording.named("a1").insert()
    receive("01")
    later = json.loads(webhook("06"))
    refund = later["data"]["object"]
    refund |= {"id": "re_3FAKER001", "charge": "ch_3FAKEa1", "payment_intent": "pi_3FAKEa1"}
    refund["metadata"] = {}

    deliver(later)
    handle_next_event(engine=default_engine())

    operation = Operation.objects.get()
    assert operation.status == FAILED
    assert operation.attention == [Attention.FAILED_AFTER_SUCCESS]


@pytest.mark.django_db
def test_refunds_of_others_are_kept_beside_ours() -> None:
    Recording.named("a3").insert()

    receive("09")

    owners = dict(ProviderRefund.objects.values_list("provider_object_id", "operation"))
    assert len(owners) == 2
    assert [name for name, owner in owners.items() if owner] == ["re_3FAKER009"]


@pytest.mark.django_db
@pytest.mark.parametrize("reverse", [False, True])
def test_our_part_is_found_wherever_it_stands_in_the_list(reverse: bool) -> None:
    Recording.named("a3").insert()
    body = json.loads(webhook("09"))
    body["data"]["object"]["refunds"]["data"].sort(key=lambda row: row["id"], reverse=reverse)

    deliver(body)
    handle_next_event(engine=default_engine())

    operation = Operation.objects.get()
    assert (operation.status, operation.provider_object_id) == (SUCCEEDED, "re_3FAKER009")


@pytest.mark.django_db
def test_foreign_refund_is_not_ours_and_asks_for_nobody() -> None:
    row = receive("25")

    assert row.handling == NOT_OURS
    assert Operation.objects.count() == AuditEntry.objects.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["46", "47"])
def test_event_of_another_kind_is_acknowledged_and_ignored(name: str) -> None:
    assert receive(name).handling == Handling.IGNORED


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "operation"), [("38", "a4"), ("39", "a3")])
def test_dispute_never_closes_an_operation(name: str, operation: str) -> None:
    Recording.named(operation).insert()

    receive(name)

    assert Operation.objects.get().status == UNKNOWN


@pytest.mark.django_db
def test_event_that_comes_before_its_operation_is_matched_afterwards() -> None:
    row = receive("40")
    assert isinstance(row, InboxItem)
    assert row.handling == Handling.UNMATCHED

    recording = Recording.named("a1")
    late = Recording(
        recording.row
        | {"op": recording.row["op"][:-2] + "99", "charge": "ch_3FAKE99"}
        | {"payment_intent": "pi_3FAKE99"}
    )
    late.insert()
    engine = default_engine()
    assert handle_next_event(engine=engine) is None
    later = replace(engine, clock=lambda: engine.clock() + timedelta(minutes=1))
    assert handle_next_event(engine=later) is True

    operation = Operation.objects.get()
    assert (operation.status, operation.provider_object_id) == (SUCCEEDED, "re_3FAKER040")
    became = handled(row.provider_event_id)
    assert (became.handling, became.operation) == (APPLIED, operation)


@pytest.mark.django_db
def test_event_of_an_operation_that_never_appears_is_given_up_after_days() -> None:
    row = receive("40")
    engine = default_engine()

    handle_next_event(engine=replace(engine, clock=lambda: engine.clock() + timedelta(days=4)))

    assert handled(row.provider_event_id).handling == Handling.UNMATCHED


REFUNDS_IN = {"05": 0, "09": 2, "10": 0, "12": 0, "13": 1, "34": 1, "47": 0, "48": 100}


@pytest.mark.parametrize(("name", "refunds"), REFUNDS_IN.items())
def test_refunds_are_read_out_of_events_of_every_version(name: str, refunds: int) -> None:
    assert len(event_facts(json.loads(webhook(name))).refunds) == refunds


def test_every_recorded_webhook_is_used() -> None:
    used = {name for case in WEBHOOKS.values() for name in case.webhooks}
    used |= {"25", "38", "39", "40", "46", "47"}
    assert {path.name.split("_")[0] for path in (CASES / "webhooks").iterdir()} == used


# --- Answers of the provider --------------------------------------------------------------------


def engine_at(url: str) -> Engine:
    """An engine of the cases' environment that talks to this address."""
    return replace(engine_for(url, MovingClock()), environment=ENVIRONMENT)


LISTS: dict[str, tuple[tuple[str, ...], str, Status, LookupResult, str]] = {
    "two equal ones, one ours": (("L01",), "a3", SUCCEEDED, LookupResult.FOUND, "re_3FAKER009"),
    "one equal one, not ours": (("L02",), "a5", UNKNOWN, LookupResult.ABSENT, ""),
    "on the second page": (("L03a", "L03b"), "h2", SUCCEEDED, LookupResult.FOUND, "re_3FAKEP010"),
    "empty": (("L04",), "a1", UNKNOWN, LookupResult.ABSENT, ""),
    "ours but failed": (("L05",), "a4", FAILED, LookupResult.FOUND, "re_3FAKER051"),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("reverse", [False, True], ids=["as recorded", "reversed"])
@pytest.mark.parametrize(
    ("pages", "name", "status", "result", "refund"), LISTS.values(), ids=LISTS.keys()
)
def test_lists_are_read_to_their_end_and_believed_by_proof_only(
    pages: tuple[str, ...],
    name: str,
    status: Status,
    result: LookupResult,
    refund: str,
    reverse: bool,
) -> None:
    operation = insert(name)
    lists = [provider_answer(page) for page in pages]
    if reverse:
        for _, _, body in lists:
            body["data"].reverse()

    with recorded_provider(lists=lists) as provider:
        found = look_up(engine=engine_at(provider.url), operation_id=operation.pk, actor=JOB)

    operation.refresh_from_db()
    assert found == result
    assert (operation.status, operation.provider_object_id) == (status, refund)
    assert (operation.next_check_at is not None) == (status == UNKNOWN)
    assert provider.seen("POST") == []
    evidence = Evidence.objects.get()
    assert evidence.facts["complete"] is True
    assert evidence.facts["pages"] == len(pages)


@pytest.mark.django_db(transaction=True)
def test_first_page_alone_is_never_read_as_absence() -> None:
    operation = insert("h2")
    broken: Recorded = (503, {}, {"error": {"type": "api_error"}})

    with recorded_provider(lists=[provider_answer("L03a"), broken]) as provider:
        found = look_up(engine=engine_at(provider.url), operation_id=operation.pk, actor=JOB)

    operation.refresh_from_db()
    assert found == LookupResult.UNREADABLE
    assert (operation.status, operation.provider_object_id) == (UNKNOWN, "")


@dataclass(frozen=True, kw_only=True)
class Said:
    """What an answer to every send of a call leaves behind."""

    status: Status
    sends: int
    reason: str = ""
    attention: tuple[Attention, ...] = ()
    failure_code: str = ""


SENDS = {
    "L06": Said(status=UNKNOWN, sends=1, reason=UnknownReason.UNSAFE_REFUSAL),
    "L07": Said(status=FAILED, sends=1, failure_code="charge_disputed"),
    "L08": Said(status=UNKNOWN, sends=1, reason=UnknownReason.UNSAFE_REFUSAL),
    "L09": Said(status=Status.OPEN, sends=3),
    "L10": Said(status=UNKNOWN, sends=1, reason=UnknownReason.SERVER_ERROR),
    "L11": Said(status=Status.OPEN, sends=3),
    "L12": Said(status=Status.OPEN, sends=1, attention=(Attention.CONFIGURATION,)),
    "L13": Said(status=Status.OPEN, sends=3),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("name", "said"), SENDS.items())
def test_answers_to_sends_mean_what_they_say(name: str, said: Said) -> None:
    operation = insert("a4", is_open=True)

    with recorded_provider(sends=[provider_answer(name)]) as provider:
        engine = engine_at(provider.url)
        send_until_decided(engine=engine, operation_id=operation.pk, actor=JOB)
        # Whoever asks again, and however often, an operation that is not open is not sent.
        for _ in range(3 if said.status != Status.OPEN else 0):
            send_until_decided(engine=engine, operation_id=operation.pk, actor=JOB)

    operation.refresh_from_db()
    assert operation.status == said.status
    assert operation.unknown_reason == said.reason
    assert operation.attention == list(said.attention)
    assert operation.failure_code == said.failure_code
    assert len(provider.seen("POST")) == said.sends == operation.attempts_made
    keys = {headers["Idempotency-Key"] for _, _, headers in provider.requests}
    assert keys == {operation.idempotency_key}


@pytest.mark.django_db(transaction=True)
def test_already_refunded_is_looked_up_and_ours_is_adopted() -> None:
    operation = insert("a3", is_open=True)

    with recorded_provider(
        sends=[provider_answer("L06")], lists=[provider_answer("L01")]
    ) as provider:
        engine = engine_at(provider.url)
        send_until_decided(engine=engine, operation_id=operation.pk, actor=JOB)
        look_up(engine=engine, operation_id=operation.pk, actor=JOB)

    operation.refresh_from_db()
    assert (operation.status, operation.provider_object_id) == (SUCCEEDED, "re_3FAKER009")
    assert len(provider.seen("POST")) == 1


@pytest.mark.django_db(transaction=True)
def test_look_up_of_a_connected_account_names_the_account() -> None:
    operation = insert("f1")

    with recorded_provider(lists=[provider_answer("L04")]) as provider:
        look_up(engine=engine_at(provider.url), operation_id=operation.pk, actor=JOB)

    assert provider.requests
    for _, _, headers in provider.requests:
        assert headers["Stripe-Account"] == "acct_FAKEconn01"


def test_every_recorded_answer_is_used() -> None:
    used = {name for pages, *_ in LISTS.values() for name in pages} | set(SENDS)
    assert {path.name.split("_")[0] for path in (CASES / "provider_answers").iterdir()} == used


def insert(name: str, *, is_open: bool = False) -> Operation:
    """A recorded operation, committed."""
    with transaction.atomic():
        return Recording.named(name).insert(is_open=is_open)
