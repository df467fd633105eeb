"""Choosing many operations in the queue: what is looked at before anything is done to them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from operations.console.bulk_forms import EXPORT, SelectionForm
from operations.console.downloads import csv_download
from operations.console.filters import narrow_of, read_filters
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import in_words
from operations.console.views.queue import view_of
from operations.domain.access import Accounts
from operations.domain.bulk import MOST_ROWS, BulkAction
from operations.domain.sentences import say
from operations.queries.bulk import export_lines
from operations.queries.choices import choices
from operations.queries.parts import Asked
from operations.queries.selection import Selected, matching, of_accounts
from operations.queries.stretches import order_of
from operations.services.bulk_previewing import BulkRefused, preview
from operations.services.disclosing import note_disclosure
from operations.services.engine import default_engine


@require_POST
@allows(Act.BULK, narrows=True)
def choose(request: ConsoleRequest) -> HttpResponse:
    """Freeze what was ticked, or all that a list's filters leave, and show what would happen."""
    form = SelectionForm(request.POST)
    if not form.is_valid():
        return _back(request, "", _("Choose what to do with the selected refunds."))
    address, is_export = form.cleaned_data["address"], form.cleaned_data["action"] == EXPORT
    accounts = request.rights.accounts(Act.EXPORT) if is_export else request.accounts
    try:
        selected = _selected(request, form.cleaned_data, accounts)
    except BulkRefused as refusal:
        return _back(request, address, in_words(refusal.sentence))
    how: dict[str, Any] = {"all": form.cleaned_data["all"], "address": address}
    if is_export:
        return _export(request, selected.ids, how)
    try:
        run = preview(
            engine=default_engine(),
            action=BulkAction(form.cleaned_data["action"]),
            ids=selected.ids,
            actor=actor_of(request),
            selection=how,
        )
    except BulkRefused as refusal:
        return _back(request, address, in_words(refusal.sentence))
    return redirect("bulk-run", run.pk)


def _selected(request: ConsoleRequest, asked: dict[str, Any], accounts: Accounts) -> Selected:
    """The ticked ones, or the whole list, of these accounts. Raises BulkRefused."""
    if not asked["all"]:
        return Selected(ids=of_accounts(_ids(request.POST.getlist("op")), accounts))
    now, person = default_engine().clock(), str(request.user.pk)
    address = QueryDict(asked["address"])
    filters = read_filters(address, choices=choices(now, accounts), person=person)
    if filters.errors:
        # A filter that is not understood filters nothing: the list would be another one.
        raise BulkRefused(say("A filter of this list is not understood any more. Choose anew."))
    view = view_of(address.get("view", ""))
    found = matching(
        Asked(
            view=view,
            person=person,
            now=now,
            order=order_of(view, address.get("sort", "")),
            narrow=narrow_of(filters.understood, person),
            accounts=accounts,
        ),
        most=MOST_ROWS,
    )
    if found.is_cut:
        raise BulkRefused(
            say(
                "This list has more than {most} refunds. Narrow it with filters, then choose.",
                most=MOST_ROWS,
            )
        )
    return found


def _ids(texts: Sequence[str]) -> list[UUID]:
    found = []
    for text in texts:
        try:
            found.append(UUID(text))
        except ValueError:
            continue
    return found


def _export(request: ConsoleRequest, ids: list[UUID], how: dict[str, Any]) -> HttpResponse:
    if not ids:
        return _back(request, how["address"], _("Choose at least one operation."))
    lines = export_lines(ids)
    told = {"what": "operations", "rows": len(lines) - 1, **how}
    note_disclosure(engine=default_engine(), actor=actor_of(request), action="exported", what=told)
    return csv_download(lines, name="refunds.csv")


def _back(request: ConsoleRequest, address: str, problem: str) -> HttpResponse:
    """To the list that was chosen from, which says what is wrong."""
    messages.error(request, problem)
    query = QueryDict(address).urlencode()
    return redirect(f"{reverse('queue')}?{query}" if query else "queue")
