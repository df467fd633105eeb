"""What the database itself refuses about keys, roles and grants."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import DatabaseError, connection, transaction

from operations.domain.access import ROLE_ACTS, Act, Role
from operations.models import Account, ApiKey, Grant

from .invariants import name_of_refusal

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


@contextmanager
def refused(by: str) -> Iterator[None]:
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        yield
    assert isinstance(caught.value.__cause__, psycopg.Error)
    assert name_of_refusal(caught.value.__cause__) == by


def _key(**more: object) -> ApiKey:
    values = {"name": "n", "prefix": "rck_1", "secret_hash": "a" * 64, "created_at": NOW} | more
    return ApiKey.objects.create(**values)


@pytest.mark.parametrize(
    "change",
    [
        "account_ids = '{}'",
        "may_write = NOT may_write",
        "expires_at = expires_at + interval '1 day'",
        "secret_hash = 'b'",
        "name = 'other'",
    ],
)
def test_what_a_key_may_do_never_changes(change: str) -> None:
    account = Account.objects.create(name="a", livemode=False)
    key = _key(account_ids=[account.pk], may_write=False, expires_at=NOW + timedelta(days=1))

    with refused(by="api_key_frozen"), connection.cursor() as cursor:
        cursor.execute(f"UPDATE operations_apikey SET {change} WHERE id = %s", [key.pk])


def test_a_revoked_key_stays_revoked() -> None:
    key = _key(revoked_at=NOW)

    for value in ("NULL", "now()"):
        with refused(by="api_key_stays_revoked"), connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE operations_apikey SET revoked_at = {value} WHERE id = %s", [key.pk]
            )


def test_a_key_reaches_no_account_that_is_not_there() -> None:
    with refused(by="api_key_reaches_what_is"):
        _key(account_ids=[123_456])


def test_a_key_does_not_expire_before_it_was_made() -> None:
    with refused(by="api_key_expires_after_it_was_made"):
        _key(expires_at=NOW)


def test_a_grant_is_given_once() -> None:
    account = Account.objects.create(name="a", livemode=False)
    user = User.objects.create_user("somebody")
    role = Group.objects.get(name="operator")
    Grant.objects.create(user=user, account=account, role=role, granted_at=NOW)

    with refused(by="grant_once_per_account_and_role"):
        Grant.objects.create(user=user, account=account, role=role, granted_at=NOW)


def test_the_migrations_gave_the_roles_what_the_rules_say() -> None:
    given = {
        role: set(Group.objects.get(name=role).permissions.values_list("codename", flat=True))
        for role in Role
    }

    assert given == {role: {str(act) for act in acts} for role, acts in ROLE_ACTS.items()}
    every = Permission.objects.filter(content_type__model="grant").values_list("codename", "name")
    assert dict(every) == dict(Grant._meta.permissions)
    assert {name for name, _words in every} == {str(act) for act in Act}
