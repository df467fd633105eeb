"""Which operations a list holds, not a page of it but all that its filters leave."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from operations.domain.access import Accounts
from operations.models import Operation
from operations.queries.narrowing import Condition
from operations.queries.parts import Asked, Part


@dataclass(frozen=True, kw_only=True)
class Selected:
    """Operations in the order of their list. `is_cut`: there are more than were taken or looked
    through."""

    ids: list[UUID]
    is_cut: bool = False


def matching(asked: Asked, *, most: int) -> Selected:
    """Up to `most` operations of a list, whatever page they are on. One query a stretch, or two."""
    ids: dict[UUID, None] = {}
    is_cut = False
    for stretch in asked.stretches:
        part = Part(asked, stretch, None)
        found = _ids(part.chosen("o.id", most + 1 - len(ids)))
        ids.update(dict.fromkeys(found))
        if len(ids) > most:
            return Selected(ids=list(ids)[:most], is_cut=True)
        is_cut = is_cut or (part.is_filtered and _has_more(part))
    return Selected(ids=list(ids), is_cut=is_cut)


def of_accounts(ids: Sequence[UUID], accounts: Accounts) -> list[UUID]:
    """Those of these operations that are of these accounts, in their order. One query or none."""
    if accounts is None:
        return list(ids)
    theirs = Operation.objects.filter(pk__in=ids, account__in=accounts)
    found = set(theirs.values_list("pk", flat=True))
    return [pk for pk in ids if pk in found]


def _ids(chosen: Condition) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(chosen.sql, chosen.values)
        return [pk for (pk,) in cursor.fetchall()]


def _has_more(part: Part) -> bool:
    """Whether the stretch goes on behind what is looked through for its filters."""
    bound = part.bound(0)
    with connection.cursor() as cursor:
        cursor.execute(bound.sql, bound.values)
        return cursor.fetchone() is not None
