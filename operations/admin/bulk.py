"""Acting on many from Django's admin: the same previews and runs as the console's."""

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy

from operations.domain.access import Act
from operations.domain.audit import Actor, ActorKind
from operations.domain.bulk import MOST_ROWS, BulkAction
from operations.models import Operation
from operations.queries.access import narrowed, read_rights
from operations.services.actors import name_of
from operations.services.bulk_previewing import BulkRefused, preview
from operations.services.engine import default_engine


class BulkActions(admin.ModelAdmin):  # type: ignore[type-arg]
    """Each action leads to a preview in the console; nothing is done here."""

    actions = ("look_up", "match_again", "claim", "assign", "close_failed", "close_succeeded")

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """None for people who may not act on many."""
        rights = read_rights(request.user)
        return super().get_actions(request) if Act.BULK in rights.anywhere else {}

    @admin.action(description=gettext_lazy("Look up again…"))
    def look_up(self, request: HttpRequest, rows: QuerySet[Operation]) -> HttpResponse | None:
        """Preview looking them up."""
        return _preview(request, rows, BulkAction.LOOK_UP)

    @admin.action(description=gettext_lazy("Match again…"))
    def match_again(self, request: HttpRequest, rows: QuerySet[Operation]) -> HttpResponse | None:
        """Preview matching again what is stored about them."""
        return _preview(request, rows, BulkAction.MATCH_AGAIN)

    @admin.action(description=gettext_lazy("Assign…"))
    def assign(self, request: HttpRequest, rows: QuerySet[Operation]) -> HttpResponse | None:
        """Preview leaving them to somebody."""
        return _preview(request, rows, BulkAction.ASSIGN)

    @admin.action(description=gettext_lazy("Claim…"))
    def claim(self, request: HttpRequest, rows: QuerySet[Operation]) -> HttpResponse | None:
        """Preview claiming them."""
        return _preview(request, rows, BulkAction.CLAIM)

    @admin.action(description=gettext_lazy("Close as failed…"))
    def close_failed(self, request: HttpRequest, rows: QuerySet[Operation]) -> HttpResponse | None:
        """Preview closing them as failed."""
        return _preview(request, rows, BulkAction.CLOSE_FAILED)

    @admin.action(description=gettext_lazy("Close as succeeded…"))
    def close_succeeded(
        self, request: HttpRequest, rows: QuerySet[Operation]
    ) -> HttpResponse | None:
        """Preview closing them as succeeded."""
        return _preview(request, rows, BulkAction.CLOSE_SUCCEEDED)


def actor_of(request: HttpRequest) -> Actor:
    """The person who asks, as the audit trail names them."""
    user = cast("User", request.user)
    return Actor(
        kind=ActorKind.PERSON,
        id=str(user.pk),
        name=name_of(user),
        address=request.META.get("REMOTE_ADDR", ""),
    )


def _preview(
    request: HttpRequest, rows: QuerySet[Operation], action: BulkAction
) -> HttpResponse | None:
    user = cast("User", request.user)
    theirs = rows.filter(**narrowed(read_rights(user).accounts(Act.BULK)))
    try:
        run = preview(
            engine=default_engine(),
            action=action,
            ids=list(theirs.order_by("pk").values_list("pk", flat=True)[: MOST_ROWS + 1]),
            actor=actor_of(request),
            selection={"admin": request.GET.urlencode()},
        )
    except BulkRefused as refusal:
        words = gettext(refusal.sentence.text).format(**refusal.sentence.values)
        messages.error(request, words)
        return None
    return redirect("bulk-run", run.pk)
