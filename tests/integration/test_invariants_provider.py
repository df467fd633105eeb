"""What the database refuses of accounts, payments, refunds, events, keys and proposals."""

from datetime import timedelta
from typing import Any

import pytest

from operations.models.webhook_event import NO_MONTH

from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> Rows:
    return Rows()


def test_an_account_has_its_name_alone_in_its_mode(rows: Rows) -> None:
    rows.account(name="main", livemode=False)
    rows.account(name="main", livemode=True)
    with refused(rows, by="account_name_once_per_mode", sqlstate=UNIQUE):
        rows.account(name="main", livemode=True)


def test_an_account_of_the_provider_is_kept_once_in_its_mode(rows: Rows) -> None:
    rows.account(provider_account="", livemode=False)
    rows.account(provider_account="", livemode=True)
    with refused(rows, by="account_once_per_provider_and_mode", sqlstate=UNIQUE):
        rows.account(provider_account="", livemode=False)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", 987_654),
        ("name", "other"),
        ("provider", "other"),
        ("provider_account", "acct_other"),
        ("livemode", True),
    ],
)
def test_an_account_is_frozen(rows: Rows, column: str, value: Any) -> None:
    account = rows.account()
    with refused(rows, by="account_frozen"):
        rows.update("account", account, **{column: value})


def test_an_account_has_one_bucket_for_each_kind_of_call(rows: Rows) -> None:
    account = rows.account()
    rows.insert("ratebucket", account_id=account, kind="read", full_at=NOW)
    rows.insert("ratebucket", account_id=account, kind="write", full_at=NOW)
    with refused(rows, by="rate_bucket_once", sqlstate=UNIQUE):
        rows.insert("ratebucket", account_id=account, kind="read", full_at=NOW)


def test_a_secret_opens_one_key(rows: Rows) -> None:
    rows.insert("apikey", name="a", prefix="p", secret_hash="same", created_at=NOW)
    with refused(rows, by="operations_apikey_secret_hash_key", sqlstate=UNIQUE):
        rows.insert("apikey", name="b", prefix="q", secret_hash="same", created_at=NOW)


def test_a_charge_is_kept_once(rows: Rows) -> None:
    account = rows.account()
    rows.payment(account, charge="ch_1")
    with refused(rows, by="payment_once_per_charge", sqlstate=UNIQUE):
        rows.payment(account, charge="ch_1")


@pytest.mark.parametrize("column", ["captured", "refunded", "refunded_by_others"])
def test_the_figures_of_a_payment_are_not_negative(rows: Rows, column: str) -> None:
    account = rows.account()
    with refused(rows, by="payment_amounts_not_negative", sqlstate=CHECK):
        rows.payment(account, **{column: -1})


def test_a_payment_stays_the_charge_and_account_it_is(rows: Rows) -> None:
    account = rows.account()
    payment, other = rows.payment(account), rows.account()
    changes: list[dict[str, Any]] = [{"charge": "ch_x"}, {"account_id": other}, {"id": 987_654}]
    for change in changes:
        with refused(rows, by="payment_frozen"):
            rows.update("payment", payment, **change)
    rows.update("payment", payment, refunded=1, read_at=NOW + timedelta(hours=1))


def test_a_refund_at_the_provider_is_kept_once(rows: Rows) -> None:
    account = rows.account()
    rows.refund(account, provider_object_id="re_1")
    with refused(rows, by="provider_refund_once", sqlstate=UNIQUE):
        rows.refund(account, provider_object_id="re_1")


def test_a_refund_at_the_provider_has_an_id(rows: Rows) -> None:
    account = rows.account()
    with refused(rows, by="provider_refund_has_an_id", sqlstate=CHECK):
        rows.refund(account, provider_object_id="")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", 987_654),
        ("provider_object_id", "re_x"),
        ("amount", 1),
        ("currency", "eur"),
        ("first_seen_at", NOW + timedelta(seconds=1)),
    ],
)
def test_what_a_refund_is_does_not_change(rows: Rows, column: str, value: Any) -> None:
    refund = rows.refund(rows.account())
    with refused(rows, by="provider_refund_frozen"):
        rows.update("providerrefund", refund, **{column: value})


def test_a_refund_stays_with_its_account(rows: Rows) -> None:
    refund, other = rows.refund(rows.account()), rows.account()
    with refused(rows, by="provider_refund_frozen"):
        rows.update("providerrefund", refund, account_id=other)


def test_a_refund_stays_with_the_operation_it_was_proven_to_belong_to(rows: Rows) -> None:
    account = rows.account()
    first, second = rows.operation(account_id=account), rows.operation(account_id=account)
    refund = rows.refund(account)
    rows.update("providerrefund", refund, operation_id=first, status="failed")
    for other in (second, None):
        with refused(rows, by="provider_refund_owner_kept"):
            rows.update("providerrefund", refund, operation_id=other)


@pytest.mark.parametrize("differs", [{"amount": 1}, {"currency": "eur"}, {"account_id": None}])
def test_a_refund_belongs_to_no_operation_that_it_contradicts(
    rows: Rows, differs: dict[str, Any]
) -> None:
    operation = rows.operation()
    account = rows.value("operation", operation, "account_id")
    if "account_id" in differs:
        account = rows.account()
        differs = {}
    refund = rows.refund(account, **differs)
    with refused(rows, by="provider_refund_fits_its_operation"):
        rows.update("providerrefund", refund, operation_id=operation)
    with refused(rows, by="provider_refund_fits_its_operation"):
        rows.refund(account, operation_id=operation, **differs)


def test_the_same_report_of_a_refund_is_kept_once(rows: Rows) -> None:
    account = rows.account()
    first, second = rows.refund(account), rows.refund(account)
    rows.report(first, fingerprint="same")
    rows.report(second, fingerprint="same")
    with refused(rows, by="refund_report_once", sqlstate=UNIQUE):
        rows.report(first, fingerprint="same")


def test_a_report_of_a_refund_comes_from_a_source_that_is_known(rows: Rows) -> None:
    with refused(rows, by="refund_report_source_known", sqlstate=CHECK):
        rows.report(rows.refund(rows.account()), source="rumour")


def test_an_event_is_kept_once(rows: Rows) -> None:
    once = {"event_id": "evt_1", "filed_at": NO_MONTH}
    rows.event(event_account="acct_1", **once)
    rows.event(event_account="acct_2", **once)
    # The rule of the whole table, under the name that it has in the partition.
    ((part,),) = rows.text(
        "SELECT part.conname FROM pg_constraint AS part JOIN pg_constraint AS whole"
        " ON whole.oid = part.conparentid WHERE whole.conname = %s"
        " AND part.conrelid = 'operations_webhookevent_rest'::regclass",
        "webhook_event_once",
    )
    with refused(rows, by=part, sqlstate=UNIQUE):
        rows.event(event_account="acct_1", **once)


def test_an_event_has_an_id(rows: Rows) -> None:
    with refused(rows, by="webhook_event_has_an_id", sqlstate=CHECK):
        rows.event(event_id="")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("endpoint_account", "acct_x"),
        ("event_account", "acct_x"),
        ("event_id", "evt_x"),
        ("event_type", "refund.failed"),
        ("livemode", True),
        ("provider_created_at", NOW),
        ("id", -1),
        ("filed_at", NOW + timedelta(seconds=1)),
        ("raw", b"[]"),
        ("payload", {"id": "evt_x"}),
        ("received_at", NOW + timedelta(seconds=1)),
    ],
)
def test_an_event_stays_as_it_came(rows: Rows, column: str, value: Any) -> None:
    event = rows.event()
    with refused(rows, by="webhook_event_frozen"):
        rows.update("webhookevent", event, **{column: value})


def test_one_proposal_waits(rows: Rows) -> None:
    operation = rows.operation()
    rows.proposal(operation)
    with refused(rows, by="proposal_one_waiting", sqlstate=UNIQUE):
        rows.proposal(operation, outcome="succeeded")


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("proposal_outcome_known", {"outcome": "perhaps"}),
        ("proposal_evidence_known", {"evidence_kind": "rumour"}),
        ("proposal_evidence_fits_its_outcome", {"outcome": "unknown"}),
        ("proposal_evidence_fits_its_outcome", {"evidence_kind": "mistake"}),
    ],
)
def test_a_proposal_says_what_was_found_and_where(
    rows: Rows, name: str, columns: dict[str, Any]
) -> None:
    operation = rows.operation()
    with refused(rows, by=name, sqlstate=CHECK):
        rows.proposal(operation, **columns)


def test_one_form_makes_one_proposal(rows: Rows) -> None:
    rows.proposal(rows.operation(), form_token="form-1")
    with refused(rows, by="proposal_form_once", sqlstate=UNIQUE):
        rows.proposal(rows.operation(), form_token="form-1")


def test_one_form_makes_one_note(rows: Rows) -> None:
    operation = rows.operation()
    rows.note(operation, form_token="form-1")
    with refused(rows, by="note_form_once", sqlstate=UNIQUE):
        rows.note(operation, form_token="form-1")


@pytest.mark.parametrize("column", ["text", "written_by"])
def test_a_note_says_what_and_who(rows: Rows, column: str) -> None:
    operation = rows.operation()
    with refused(rows, by="note_says_what_and_who", sqlstate=CHECK):
        rows.note(operation, **{column: ""})


def test_nobody_approves_a_proposal_of_their_own(rows: Rows) -> None:
    proposal = rows.proposal(rows.operation())
    with refused(rows, by="proposal_two_people", sqlstate=CHECK):
        rows.update("proposal", proposal, state="approved", decided_by="alice", decided_at=NOW)
    rows.update("proposal", proposal, state="approved", decided_by="bob", decided_at=NOW)


@pytest.mark.parametrize(
    "columns",
    [
        {"state": "approved", "decided_by": "bob"},
        {"state": "approved", "decided_at": NOW},
        {"state": "rejected", "decided_at": NOW},
        {"state": "void"},
        {"state": "lost", "decided_by": "bob", "decided_at": NOW},
        {"decided_by": "bob"},
        {"decided_at": NOW},
    ],
)
def test_a_decision_says_who_and_when(rows: Rows, columns: dict[str, Any]) -> None:
    proposal = rows.proposal(rows.operation())
    with refused(rows, by="proposal_decision_is_whole", sqlstate=CHECK):
        rows.update("proposal", proposal, **columns)


def test_a_proposal_starts_waiting(rows: Rows) -> None:
    operation = rows.operation()
    with refused(rows, by="proposal_starts_waiting"):
        rows.proposal(operation, state="approved", decided_by="bob", decided_at=NOW)


@pytest.mark.parametrize("state", ["approved", "rejected", "void"])
def test_a_proposal_is_decided_once(rows: Rows, state: str) -> None:
    proposal = rows.proposal(rows.operation())
    rows.update("proposal", proposal, state=state, decided_by="bob", decided_at=NOW)
    changes: list[dict[str, Any]] = [
        {"state": "waiting", "decided_by": "", "decided_at": None},
        {"decided_by": "carol"},
        {"decision_note": "Another."},
    ]
    for change in changes:
        with refused(rows, by="proposal_decided_once"):
            rows.update("proposal", proposal, **change)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", 987_654),
        ("outcome", "succeeded"),
        ("evidence_kind", "bank_statement"),
        ("evidence_reference", "case 2"),
        ("note", "Another."),
        ("reasons", []),
        ("revision", 9),
        ("proposed_by", "bob"),
        ("proposed_by_name", "Bob"),
        ("proposed_at", NOW + timedelta(seconds=1)),
    ],
)
def test_what_was_proposed_is_frozen(rows: Rows, column: str, value: Any) -> None:
    proposal = rows.proposal(rows.operation())
    with refused(rows, by="proposal_frozen"):
        rows.update("proposal", proposal, **{column: value})


def test_a_proposal_stays_with_its_operation(rows: Rows) -> None:
    proposal, other = rows.proposal(rows.operation()), rows.operation()
    with refused(rows, by="proposal_frozen"):
        rows.update("proposal", proposal, operation_id=other)
