"""What a person may do and where, and which account a thing belongs to."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.db.models import Model, QuerySet

from operations.domain.access import ALL, NONE, Accounts, Rights, rights_of
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
