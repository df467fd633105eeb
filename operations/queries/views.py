"""The lists that a person sees under a name: their own and the shared ones."""

from typing import NamedTuple

from django.db.models import Q

from operations.models import SavedView


class Kept(NamedTuple):
    """A saved view as its tab shows it. `mine`: this person keeps it."""

    id: int
    name: str
    query: str
    shared: bool
    mine: bool


def views_of(person: str, *, shared: bool = True) -> list[Kept]:
    """What this person keeps and what is shared with everybody, shared ones first. One query.

    Without `shared` only the person's own: a shared one may speak of any account.
    """
    rows = (
        SavedView.objects.filter(Q(owner=person) | (Q(shared=True) if shared else Q()))
        .order_by("-shared", "name", "pk")
        .values_list("id", "name", "query", "shared", "owner")
    )
    return [
        Kept(id=pk, name=name, query=query, shared=shared, mine=owner == person)
        for pk, name, query, shared, owner in rows
    ]
