"""What the database refuses of an operation, whoever writes and in whatever words."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> Rows:
    return Rows()


def test_one_key_stands_for_one_operation_of_an_account(rows: Rows) -> None:
    account = rows.account()
    rows.operation(account_id=account, idempotency_key="recon-1")
    with refused(rows, by="operation_key_once", sqlstate=UNIQUE):
        rows.operation(account_id=account, idempotency_key="recon-1")


def test_two_accounts_can_have_the_same_key(rows: Rows) -> None:
    rows.operation(idempotency_key="recon-1")
    rows.operation(idempotency_key="recon-1")


def test_an_operation_has_a_key(rows: Rows) -> None:
    with refused(rows, by="operation_has_a_key", sqlstate=CHECK):
        rows.operation(idempotency_key="")


@pytest.mark.parametrize(
    "first",
    [
        {},
        {"status": "unknown", "unknown_reason": "server_error"},
        {"status": "processing", "provider_object_id": "re_1"},
    ],
)
def test_an_identity_has_one_unresolved_operation(rows: Rows, first: dict[str, Any]) -> None:
    account = rows.account()
    operation = rows.operation(account_id=account, order_id="4417", reference="line 1")
    if first:
        rows.change(operation, **first)
    with refused(rows, by="operation_one_unresolved", sqlstate=UNIQUE):
        rows.operation(account_id=account, order_id="4417", reference="line 1", amount=1)


def test_a_settled_operation_and_another_reference_leave_room(rows: Rows) -> None:
    account = rows.account()
    settled = rows.operation(account_id=account, order_id="4417")
    rows.change(settled, status="failed", settled_at=NOW)
    rows.operation(account_id=account, order_id="4417")
    rows.operation(account_id=account, order_id="4417", reference="line 2")


def test_a_refund_at_the_provider_belongs_to_one_operation(rows: Rows) -> None:
    account = rows.account()
    first, second = rows.operation(account_id=account), rows.operation(account_id=account)
    rows.change(first, provider_object_id="re_1")
    with refused(rows, by="operation_one_provider_object", sqlstate=UNIQUE):
        rows.change(second, provider_object_id="re_1")


@pytest.mark.parametrize("amount", [0, -1])
def test_an_amount_is_more_than_zero(rows: Rows, amount: int) -> None:
    with refused(rows, by="operation_amount_positive", sqlstate=CHECK):
        rows.operation(amount=amount)


@pytest.mark.parametrize("currency", ["USD", "us", "u$d", "us\n"])
def test_a_currency_is_three_small_letters(rows: Rows, currency: str) -> None:
    account = rows.account()
    payment = rows.payment(account, currency=currency)
    with refused(rows, by="operation_currency_code", sqlstate=CHECK):
        rows.operation(account_id=account, payment_id=payment, currency=currency)


@pytest.mark.parametrize("reason", ["", "because"])
def test_unknown_has_a_reason_that_is_known(rows: Rows, reason: str) -> None:
    operation = rows.operation()
    with refused(rows, by="operation_unknown_has_a_reason", sqlstate=CHECK):
        rows.change(operation, status="unknown", unknown_reason=reason)


def test_what_is_not_unknown_has_no_reason(rows: Rows) -> None:
    operation = rows.operation()
    with refused(rows, by="operation_unknown_has_a_reason", sqlstate=CHECK):
        rows.change(operation, unknown_reason="server_error")


def test_success_names_a_refund(rows: Rows) -> None:
    operation = rows.operation()
    with refused(rows, by="operation_success_names_a_refund", sqlstate=CHECK):
        rows.change(operation, status="succeeded", settled_at=NOW)


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "failed"},
        {"status": "succeeded", "provider_object_id": "re_1"},
        {"settled_at": NOW},
        {"status": "unknown", "unknown_reason": "server_error", "settled_at": NOW},
    ],
)
def test_what_is_settled_and_nothing_else_has_a_time(rows: Rows, columns: dict[str, Any]) -> None:
    operation = rows.operation()
    with refused(rows, by="operation_settled_has_a_time", sqlstate=CHECK):
        rows.change(operation, **columns)


@pytest.mark.parametrize("columns", [{"lease_owner": "holder"}, {"lease_expires_at": NOW}])
def test_a_lease_has_a_holder_and_an_end(rows: Rows, columns: dict[str, Any]) -> None:
    operation = rows.operation()
    with refused(rows, by="operation_lease_is_whole", sqlstate=CHECK):
        rows.change(operation, **columns)


def test_a_flag_for_people_is_one_that_is_known(rows: Rows) -> None:
    operation = rows.operation()
    rows.change(operation, attention=["conflict", "mismatch"])
    with refused(rows, by="operation_attention_known", sqlstate=CHECK):
        rows.change(operation, attention=["conflict", "odd"])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", uuid4()),
        ("group", uuid4()),
        ("kind", "payout"),
        ("order_id", "4418"),
        ("reference", "line 9"),
        ("customer_account", "somebody"),
        ("amount", 1),
        ("currency", "eur"),
        ("reason", "another"),
        ("input_hash", "c" * 64),
        ("environment", "elsewhere"),
        ("endpoint", "/v2/refunds"),
        ("idempotency_key", "recon-other"),
        ("parameters", {"amount": 1}),
        ("created_at", NOW + timedelta(seconds=1)),
    ],
)
def test_what_was_asked_for_is_frozen(rows: Rows, column: str, value: Any) -> None:
    operation = rows.operation()
    with refused(rows, by="operation_frozen"):
        rows.change(operation, **{column: value})


def test_an_operation_stays_with_its_account_and_payment(rows: Rows) -> None:
    account = rows.account()
    operation = rows.operation(account_id=account)
    with refused(rows, by="operation_frozen"):
        rows.change(operation, account_id=rows.account())
    with refused(rows, by="operation_frozen"):
        rows.change(operation, payment_id=rows.payment(account))
    with refused(rows, by="operation_frozen"):
        rows.change(operation, reissue_of_id=rows.operation())


def test_an_operation_is_in_the_account_and_currency_of_its_payment(rows: Rows) -> None:
    account = rows.account()
    elsewhere = rows.payment(rows.account())
    with refused(rows, by="operation_fits_its_payment"):
        rows.operation(account_id=account, payment_id=elsewhere)
    in_euro = rows.payment(account, currency="eur")
    with refused(rows, by="operation_fits_its_payment"):
        rows.operation(account_id=account, payment_id=in_euro, currency="usd")


@pytest.mark.parametrize("other", ["", "re_2"])
def test_the_refund_of_an_operation_is_written_once(rows: Rows, other: str) -> None:
    operation = rows.operation()
    rows.change(operation, provider_object_id="re_1")
    with refused(rows, by="operation_refund_written_once"):
        rows.change(operation, provider_object_id=other)


@pytest.mark.parametrize("step", [-1, 0, 2])
def test_every_change_counts_the_revision_by_one(rows: Rows, step: int) -> None:
    operation = rows.operation(revision=5)
    with refused(rows, by="operation_revision_counts"):
        rows.update("operation", operation, failure_code="x", revision=5 + step)


@pytest.mark.parametrize("step", [-1, 2])
def test_a_plan_leaves_the_revision_or_counts_it_by_one(rows: Rows, step: int) -> None:
    operation = rows.operation(revision=5)
    rows.update("operation", operation, next_check_at=NOW, lookups_made=1)
    rows.update("operation", operation, next_check_at=None, revision=6)
    with refused(rows, by="operation_revision_counts"):
        rows.update("operation", operation, next_check_at=NOW, revision=6 + step)


@pytest.mark.parametrize("column", ["attempts_made", "lookups_made"])
def test_what_was_counted_is_not_counted_back(rows: Rows, column: str) -> None:
    operation = rows.operation(**{column: 3})
    with refused(rows, by="operation_counts_kept"):
        rows.change(operation, **{column: 2})


@pytest.mark.parametrize("moved", [None, NOW + timedelta(hours=1), NOW - timedelta(hours=1)])
def test_the_time_of_the_first_send_is_kept(rows: Rows, moved: Any) -> None:
    operation = rows.operation()
    rows.change(operation, first_sent_at=NOW)
    with refused(rows, by="operation_first_send_kept"):
        rows.change(operation, first_sent_at=moved)


@pytest.mark.parametrize("moved", [None, NOW + timedelta(seconds=1)])
def test_the_window_of_a_key_is_never_stretched(rows: Rows, moved: Any) -> None:
    operation = rows.operation()
    rows.change(operation, key_window_closes_at=NOW)
    with refused(rows, by="operation_key_window_kept"):
        rows.change(operation, key_window_closes_at=moved)


def test_the_window_of_a_key_may_be_cut_short(rows: Rows) -> None:
    operation = rows.operation()
    rows.change(operation, key_window_closes_at=NOW)
    rows.change(operation, key_window_closes_at=NOW - timedelta(hours=1))


@pytest.mark.parametrize(
    "columns",
    [
        {"lease_owner": "", "lease_expires_at": None},
        {"lease_owner": "somebody else"},
    ],
)
def test_a_lease_is_neither_dropped_nor_taken_over_during_a_send(
    rows: Rows, columns: dict[str, Any]
) -> None:
    operation = rows.operation()
    attempt = rows.attempt(operation)
    with refused(rows, by="operation_lease_covers_the_send"):
        rows.change(operation, **columns)
    rows.finish(attempt)
    rows.change(operation, **columns)


def test_a_lease_can_be_prolonged_during_a_send(rows: Rows) -> None:
    operation = rows.operation()
    rows.attempt(operation)
    rows.change(operation, lease_expires_at=NOW + timedelta(hours=1))
