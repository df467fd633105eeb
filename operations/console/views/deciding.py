"""Decisions beside closing: reopening, reissuing, notes, and the queue of the second person."""

from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from operations.console.changes import changes_since
from operations.console.forms import NoteForm, ReissueForm, ReopenForm, typed_amount_problem
from operations.console.keeping import kept_fields
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows, prove_again
from operations.console.proving import proved_recently
from operations.console.saying import show_refusal
from operations.console.views.operation import context_of, dossier_or_404
from operations.domain.closure import may_be_reopened
from operations.domain.statuses import Status
from operations.queries.bulk import runs_that_wait
from operations.queries.dossier import Dossier
from operations.queries.proposals import waiting_proposals
from operations.services import noting, reissuing, reopening
from operations.services.engine import default_engine
from operations.services.weighing import ClosingRefused, StaleView, above_limit


@require_http_methods(["GET", "HEAD", "POST"])
@allows(Act.DECIDE)
def reopen(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """Propose to take a closing back, with a reason; a second person decides."""
    dossier = dossier_or_404(operation_id)
    if request.method != "POST":
        return _page(
            request, "reopen", dossier, ReopenForm(initial=_fresh(dossier) | kept_fields(request))
        )
    form = ReopenForm(request.POST)
    stale, status = False, 422
    if above_limit(default_engine(), dossier.operation) and not proved_recently(request):
        return prove_again(request, reverse("reopen", args=[operation_id]))
    if form.is_valid():
        try:
            reopening.propose_reopening(
                engine=default_engine(),
                operation_id=operation_id,
                taking=form.taking(),
                actor=actor_of(request),
            )
            return redirect("operation", operation_id)
        except StaleView:
            stale = True
        except ClosingRefused as refusal:
            status = show_refusal(form, refusal)
    return _again(request, "reopen", operation_id, form, stale=stale, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@allows(Act.DECIDE)
def reissue(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """Open a new refund in the place of a failed one, after its amount was typed out."""
    dossier = dossier_or_404(operation_id)
    if request.method != "POST":
        return _page(
            request, "reissue", dossier, ReissueForm(initial=_fresh(dossier) | kept_fields(request))
        )
    form = ReissueForm(request.POST)
    stale, status = False, 422
    if above_limit(default_engine(), dossier.operation) and not proved_recently(request):
        return prove_again(request, reverse("reissue", args=[operation_id]))
    if form.is_valid():
        problem = typed_amount_problem(form.cleaned_data["typed"], dossier.operation.money)
        if problem:
            form.add_error("typed", problem)
    if form.is_valid():
        try:
            opened = reissuing.reissue(
                engine=default_engine(),
                operation_id=operation_id,
                reason=form.cleaned_data["reason"],
                revision=form.cleaned_data["revision"],
                actor=actor_of(request),
                may_exceed=Act.APPROVE in request.acts,
            )
            return redirect("operation", opened.pk)
        except StaleView:
            stale = True
        except ClosingRefused as refusal:
            status = show_refusal(form, refusal)
    return _again(request, "reissue", operation_id, form, stale=stale, status=status)


@require_POST
@allows(Act.DECIDE)
def add_note(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """Keep a remark for good."""
    dossier = dossier_or_404(operation_id)
    form = NoteForm(request.POST)
    if form.is_valid():
        noting.add_note(
            engine=default_engine(),
            operation_id=operation_id,
            text=form.cleaned_data["text"],
            form_token=form.token(),
            actor=actor_of(request),
        )
        return redirect("operation", operation_id)
    context = context_of(request, dossier) | {"note_form": form}
    return answer(request, "operations/operation.html", context, status=422)


@require_GET
@allows(Act.READ, narrows=True)
def proposals(request: ConsoleRequest) -> HttpResponse:
    """What waits for a second person, oldest first, and how much of it this person may answer."""
    rows, counts = waiting_proposals(str(request.user.pk), request.accounts)
    context = {
        "proposals": rows,
        "counts": counts,
        "actor_id": str(request.user.pk),
        "bulk_waiting": runs_that_wait(request.accounts),
    }
    return answer(request, "operations/proposals.html", context)


def _fresh(dossier: Dossier) -> dict[str, Any]:
    return {
        "revision": dossier.operation.revision,
        "seen": dossier.seen,
        "form_token": uuid4(),
    }


def _again(
    request: ConsoleRequest,
    name: str,
    operation_id: UUID,
    form: forms.Form,
    *,
    stale: bool,
    status: int,
) -> HttpResponse:
    """The page as of now, with what was typed; what changed when it was overtaken."""
    dossier = dossier_or_404(operation_id)
    if not stale:
        return _page(request, name, dossier, form, status=status)
    kept = {name: form[name].value() for name in form.fields} | _fresh(dossier) | {"ground": ""}
    changes = changes_since(dossier, form.cleaned_data["seen"])
    fresh = type(form)(initial=kept)
    return _page(request, name, dossier, fresh, status=409, changes=changes)


def _page(
    request: ConsoleRequest,
    name: str,
    dossier: Dossier,
    form: forms.Form,
    *,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    operation = dossier.operation
    context = context_of(request, dossier) | {"form": form}
    if name == "reopen":
        may = may_be_reopened(Status(operation.status), operation.failure_code)
        context["possible"] = may and dossier.waiting is None
    else:
        context["why_not"] = reissuing.why_not_reissued(
            default_engine(), operation, may_exceed=Act.APPROVE in request.acts
        )
    return answer(request, f"operations/{name}.html", context | more, status=status)
