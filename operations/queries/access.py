"""What a person may do and where, and which account a thing belongs to."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.db.models import Model, QuerySet

from operations.domain.access import ALL, NONE, Accounts, Act, Rights, rights_of
from operations.models import (
    Account,
    BackfillRun,
    Discrepancy,
    Operation,
    OrphanEvent,
    ProviderRefund,
    ReportFile,
)

_RIGHTS = """
SELECT held.account_id, permission.codename
FROM (
    SELECT NULL::bigint AS account_id, group_id FROM auth_user_groups WHERE user_id = %(user)s
    UNION ALL
    SELECT account_id, role_id FROM operations_grant WHERE user_id = %(user)s
) AS held
JOIN auth_group_permissions AS given ON given.group_id = held.group_id
JOIN auth_permission AS permission ON permission.id = given.permission_id
JOIN django_content_type AS kind ON kind.id = permission.content_type_id
WHERE kind.app_label = 'operations' AND kind.model = 'grant'
"""


def read_rights(user: User | AnonymousUser) -> Rights:
    """By the person's groups and grants. One query; none for the site's administrators."""
    if not user.is_active:
        return NONE
    if user.is_superuser:
        return ALL
    with connection.cursor() as cursor:
        cursor.execute(_RIGHTS, {"user": user.pk})
        return rights_of(cursor.fetchall())


_ALL_RIGHTS = """
SELECT held.user_id, held.account_id, permission.codename
FROM (
    SELECT user_id, NULL::bigint AS account_id, group_id FROM auth_user_groups
    UNION ALL
    SELECT user_id, account_id, role_id FROM operations_grant
) AS held
JOIN auth_group_permissions AS given ON given.group_id = held.group_id
JOIN auth_permission AS permission ON permission.id = given.permission_id
JOIN django_content_type AS kind ON kind.id = permission.content_type_id
WHERE kind.app_label = 'operations' AND kind.model = 'grant' AND permission.codename = %(act)s
"""


def rights_of_person(person: str) -> Rights:
    """What somebody may do now, by the id that the records name them by; nothing if they left."""
    user = User.objects.filter(pk=int(person)).first() if person.isdecimal() else None
    return read_rights(user) if user else NONE


def people_who(act: Act, account_ids: Collection[int]) -> list[User]:
    """Everybody who may do this at each of these accounts, by name. Two queries."""
    rows: dict[int, list[tuple[int | None, str]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_ALL_RIGHTS, {"act": str(act)})
        for user_id, account_id, name in cursor.fetchall():
            rows.setdefault(user_id, []).append((account_id, name))
    able = []
    for user in User.objects.filter(is_active=True).order_by("first_name", "last_name", "username"):
        rights = ALL if user.is_superuser else rights_of(rows.get(user.pk, ()))
        if all(act in rights.at(account) for account in account_ids):
            able.append(user)
    return able


def _of(model: type[Model], path: str = "account_id") -> Callable[[Any], int | None]:
    def find(pk: Any) -> int | None:
        rows: QuerySet[Any] = model._default_manager.filter(pk=pk)
        found: int | None = rows.values_list(path, flat=True).first()
        return found

    return find


#: The account of what an address names, by the argument that names it.
ACCOUNT_OF: Mapping[str, Callable[[Any], int | None]] = {
    "operation_id": _of(Operation),
    "account_id": _of(Account, "pk"),
    "report_id": _of(ReportFile),
    "refund_id": _of(ProviderRefund),
    "discrepancy_id": _of(Discrepancy, "payment__account_id"),
    "orphan_id": _of(OrphanEvent),
    "run_id": _of(BackfillRun),
}


def narrowed(accounts: Accounts, path: str = "account") -> dict[str, list[int]]:
    """The same as the arguments of a queryset's `filter`."""
    return {} if accounts is None else {f"{path}__in": sorted(accounts)}
