"""Many rows written in one statement keep each its own values, also where most are the same."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from operations.domain.audit import CHAIN_START
from operations.models import Account, AuditEntry, Payment
from operations.models.grouping import insert_many, update_many
from operations.models.statements import count_together

pytestmark = pytest.mark.django_db

_MANY = 60
_NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def _entry(operation: UUID, reason: str, after: dict[str, object]) -> AuditEntry:
    return AuditEntry(
        chain=str(operation),
        number=1,
        operation_id=operation,
        at=_NOW,
        actor_kind="person",
        actor_id="1",
        actor_name="Maya Kline",
        action="closed_failed",
        before={},
        after=after,
        reason=reason,
        previous_hash=CHAIN_START,
        entry_hash=operation.hex * 2,
    )


_NAMES = tuple(field.attname for field in AuditEntry._meta.concrete_fields if not field.primary_key)


def test_the_one_that_differs_in_the_middle_is_written_as_it_is() -> None:
    ids = [uuid4() for _ in range(_MANY)]
    rows = [_entry(pk, "other" if n == 30 else "same", {"one": 1}) for n, pk in enumerate(ids)]
    assert count_together(insert_many(rows, _NAMES, once=False)) == [_MANY]
    kept = {row.operation_id: row for row in AuditEntry.objects.all()}
    assert [kept[pk].reason for pk in ids].index("other") == 30
    assert {kept[pk].reason for pk in ids} == {"same", "other"}
    assert {kept[pk].at for pk in ids} == {_NOW}
    assert all(kept[pk].chain == str(pk) for pk in ids)


def test_json_that_is_equal_in_python_alone_is_told_apart() -> None:
    ids = [uuid4() for _ in range(_MANY)]
    rows = [_entry(pk, "same", {"is": True if n == 30 else 1}) for n, pk in enumerate(ids)]
    count_together(insert_many(rows, _NAMES, once=False))
    kept = {row.operation_id: row.after["is"] for row in AuditEntry.objects.all()}
    assert [pk for pk in ids if kept[pk] is True] == [ids[30]]


def test_what_all_have_in_common_is_changed_beside_what_each_has_of_its_own() -> None:
    account = Account.objects.create(name="many", livemode=False, provider_account="")
    rows = [
        Payment(
            account=account,
            charge=f"ch_{number}",
            currency="usd",
            captured=1_000,
            refunded=0,
            read_at=_NOW,
        )
        for number in range(_MANY)
    ]
    Payment.objects.bulk_create(rows)
    for number, row in enumerate(rows):
        row.captured, row.refunded = 2_000, number
    names = ("captured", "refunded")
    assert count_together(update_many(rows, names, [None] * _MANY)) == [_MANY]
    kept = list(Payment.objects.order_by("pk").values_list("charge", *names))
    assert kept == [(f"ch_{number}", 2_000, number) for number in range(_MANY)]
