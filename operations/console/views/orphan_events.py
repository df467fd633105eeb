"""An event that matches nothing: what it may be about, and a person's answer."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from operations.console.forms import LinkForm, OutsideForm
from operations.console.keeping import kept_orphan_forms
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import show_refusal
from operations.models import Operation, OrphanEvent
from operations.queries.orphan_events import described_events
from operations.queries.search import as_uuid, clean_query
from operations.services.engine import default_engine
from operations.services.orphan_events import (
    OrphanEventRefused,
    link_event,
    mark_event_outside,
)
from operations.services.weighing import StaleView


@require_GET
@allows(Act.READ)
def event(request: ConsoleRequest, orphan_id: int) -> HttpResponse:
    """One event, and the operations of its payment."""
    return _page(request, _event_or_404(orphan_id), **kept_orphan_forms(request))


@require_POST
@allows(Act.DECIDE)
def link(request: ConsoleRequest, orphan_id: int) -> HttpResponse:
    """Record that it is an operation's."""
    row = _event_or_404(orphan_id)
    form = LinkForm(request.POST)
    if not form.is_valid():
        return _page(request, row, link_form=form, status=422)
    try:
        link_event(
            engine=default_engine(),
            orphan_id=orphan_id,
            link=form.link(),
            actor=actor_of(request),
        )
    except StaleView:
        message = _("The operation changed since this page was made. Nothing was linked.")
        form.add_error(None, message)
        return _page(request, row, link_form=form, status=409)
    except OrphanEventRefused as refusal:
        show_refusal(form, refusal)
        return _page(request, _event_or_404(orphan_id), link_form=form, status=422)
    return redirect("operation", form.cleaned_data["operation"])


@require_POST
@allows(Act.DECIDE)
def outside(request: ConsoleRequest, orphan_id: int) -> HttpResponse:
    """Record that it was made outside."""
    row = _event_or_404(orphan_id)
    form = OutsideForm(request.POST)
    if form.is_valid():
        try:
            mark_event_outside(
                engine=default_engine(),
                orphan_id=orphan_id,
                reason=form.cleaned_data["reason"],
                actor=actor_of(request),
            )
            return redirect("orphan-event", orphan_id)
        except OrphanEventRefused as refusal:
            show_refusal(form, refusal)
            row = _event_or_404(orphan_id)
    return _page(request, row, outside_form=form, status=422)


def _page(
    request: ConsoleRequest, row: OrphanEvent, *, status: int = 200, **forms: Any
) -> HttpResponse:
    (described,) = described_events([row])
    candidates = list(described.candidates)
    kept = forms["link_form"]["operation"].value() if "link_form" in forms else ""
    typed = clean_query(request.GET.get("operation", "") or str(kept or ""))
    also = _named(row, typed)
    if also is not None and also not in candidates:
        candidates.append(also)
    context = {
        "row": described,
        "candidates": candidates,
        "typed": typed,
        "typed_missing": bool(typed) and also is None,
    }
    return answer(request, "operations/orphan_event.html", context | forms, status=status)


def _named(row: OrphanEvent, typed: str) -> Operation | None:
    """The operation of the event's account that somebody named by its id."""
    operation_id = as_uuid(typed)
    if operation_id is None or row.account_id is None:
        return None
    rows = Operation.objects.select_related("payment", "account")
    return rows.filter(pk=operation_id, account_id=row.account_id).first()


def _event_or_404(orphan_id: int) -> OrphanEvent:
    rows = OrphanEvent.objects.select_related("account", "operation")
    return get_object_or_404(rows, pk=orphan_id)
