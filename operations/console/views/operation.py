"""The page of one operation, and looking it up again."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from operations.console.forms import AnswerForm, ClearFlagForm, NoteForm
from operations.console.keeping import kept_fields
from operations.console.live import mark_of, unchanged
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.presenting import operation_context
from operations.console.working import work_context
from operations.queries.dossier import Dossier, read_dossier
from operations.queries.marks import operation_mark
from operations.queries.timeline import timeline
from operations.services import looking_up
from operations.services.bundling import bundle_of
from operations.services.disclosing import note_disclosure
from operations.services.engine import default_engine
from operations.services.looking_up import LookupResult


@require_GET
@allows(Act.READ)
def operation(request: ConsoleRequest, operation_id: UUID, tab: str = "timeline") -> HttpResponse:
    """What we know, what to do next, and the history, as timeline or as audit trail."""
    mark, _same = _mark(request, operation_id)
    context = context_of(request, dossier_or_404(operation_id), tab=tab)
    context |= _forms_kept(kept_fields(request))
    return answer(request, "operations/operation.html", context, part="history", mark=mark)


@require_GET
@allows(Act.READ)
def operation_now(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """The same page; to a browser that shows it already only what may have changed."""
    mark, same = _mark(request, operation_id)
    if same:
        return same
    context = context_of(request, dossier_or_404(operation_id))
    return answer(request, "operations/operation.html", context, part="whole", mark=mark)


@require_GET
@allows(Act.READ_RAW)
def event(request: ConsoleRequest, operation_id: UUID, anchor: str) -> HttpResponse:
    """One event of the timeline as it was recorded, secrets masked."""
    dossier = dossier_or_404(operation_id)
    found = next((row for row in timeline(dossier) if row.anchor == anchor), None)
    if found is None:
        raise Http404
    note_disclosure(
        engine=default_engine(),
        actor=actor_of(request),
        action="raw_read",
        operation_id=operation_id,
        what={"anchor": anchor},
    )
    context = {"operation": dossier.operation, "event": found}
    return answer(request, "operations/event.html", context, part="raw")


@require_POST
@allows(Act.EXPORT)
def bundle(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """All that is recorded of it as a signed ZIP. Who took it is written down first."""
    dossier_or_404(operation_id)
    made = bundle_of(engine=default_engine(), operation_id=operation_id, actor=actor_of(request))
    response = HttpResponse(made.content, content_type="application/zip")
    response.headers["Content-Disposition"] = f'attachment; filename="{made.name}"'
    response.headers["Cache-Control"] = "no-store"
    return response


@require_POST
@allows(Act.DECIDE)
def look_up(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """Read the payment's refunds at the provider now. It moves no money."""
    dossier_or_404(operation_id)
    result = looking_up.look_up(
        engine=default_engine(), operation_id=operation_id, actor=actor_of(request)
    )
    if not request.htmx:
        return redirect("operation", operation_id)
    context = context_of(request, dossier_or_404(operation_id)) | {"said": _said(result)}
    return answer(request, "operations/operation.html", context, part="whole")


def _forms_kept(fields: dict[str, Any]) -> dict[str, Any]:
    """The page's forms with what was typed before a sign-in."""
    if not fields:
        return {}
    if "text" in fields:
        return {"note_form": NoteForm(initial=fields)}
    if "attention" in fields:
        return {"flag_form": ClearFlagForm(initial=fields)}
    if "reason" in fields:
        return {"take_over_reason": fields["reason"]}
    return {"answer_form": AnswerForm(initial=fields)}


def _mark(request: ConsoleRequest, operation_id: UUID) -> tuple[str, HttpResponse | None]:
    """The mark of what the page shows, read before the page itself, and 304 if it is known."""
    now = default_engine().clock()
    mark = mark_of(request, operation_id, *operation_mark(operation_id), now=now)
    return mark, unchanged(request, mark, now=now)


def dossier_or_404(operation_id: UUID) -> Dossier:
    """The operation with all that belongs to it. Raises Http404."""
    dossier = read_dossier(operation_id)
    if dossier is None:
        raise Http404
    return dossier


def context_of(
    request: ConsoleRequest, dossier: Dossier, *, tab: str = "timeline"
) -> dict[str, Any]:
    """What the operation's page shows to this person."""
    return operation_context(
        dossier, engine=default_engine(), actor_id=str(request.user.pk), tab=tab
    ) | work_context(request, dossier.operation.pk)


def _said(result: LookupResult) -> str:
    match result:
        case LookupResult.FOUND:
            return _("A refund with our reference is on the payment.")
        case LookupResult.ABSENT:
            return _("No refund with our reference was found.")
        case LookupResult.INCOMPLETE:
            return _("The refunds could not be read to the end.")
        case LookupResult.UNREADABLE:
            return _("The provider could not be read. Nothing has changed.")
