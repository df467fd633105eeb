"""Deciding: closing, the second person's answer, clearing a flag, and the receipt."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from operations.console.changes import changes_since, newest_decision
from operations.console.forms import AnswerForm, ClearFlagForm, ClosingForm
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.views.operation import context_of, dossier_or_404
from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.domain.statuses import Attention
from operations.models import Policy, PolicyName, Proposal
from operations.queries.dossier import Dossier
from operations.services import clearing, closing
from operations.services.engine import default_engine
from operations.services.weighing import ClosingRefused, StaleView, why_second_person


@require_http_methods(["GET", "HEAD", "POST"])
@allows(Act.DECIDE)
def close(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """The decision page. An outcome stands there only when a link or the person chose it."""
    dossier = dossier_or_404(operation_id)
    if request.method != "POST":
        return _decision_page(request, dossier, _fresh_form(dossier, request.GET.get("outcome")))
    form = ClosingForm(request.POST)
    if form.is_valid() and form.cleaned_data["revision"] != dossier.operation.revision:
        return _stale(request, form)(dossier)
    if not form.is_valid():
        return _decision_page(request, dossier, form, status=422)
    if dossier.waiting is not None:
        return _stale(request, form)(dossier)
    try:
        proposal = closing.close(
            engine=default_engine(),
            operation_id=operation_id,
            decision=form.decision(),
            actor=actor_of(request),
        )
    except StaleView:
        return _stale(request, form)(dossier_or_404(operation_id))
    except ClosingRefused as refusal:
        _show_refusal(form, refusal)
        return _decision_page(request, dossier_or_404(operation_id), form, status=422)
    return redirect("operation" if proposal else "receipt", operation_id)


@require_GET
@allows(Act.READ)
def receipt(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """Who closed it, when, on which evidence: a page to keep."""
    dossier = dossier_or_404(operation_id)
    decision = newest_decision(dossier)
    if decision is None:
        raise Http404
    context = context_of(request, dossier) | {"decision": decision}
    return answer(request, "operations/receipt.html", context)


@require_POST
@allows(Act.APPROVE)
def approve(request: ConsoleRequest, operation_id: UUID, proposal_id: int) -> HttpResponse:
    """A second person agrees, and the operation is closed."""

    def call(form: forms.Form) -> None:
        closing.approve(
            engine=default_engine(),
            proposal_id=proposal_id,
            revision=form.cleaned_data["revision"],
            note=form.cleaned_data["note"],
            actor=actor_of(request),
        )

    _proposal_or_404(operation_id, proposal_id)
    return _act(request, operation_id, AnswerForm, "answer_form", call, then="receipt")


@require_POST
@allows(Act.APPROVE)
def reject(request: ConsoleRequest, operation_id: UUID, proposal_id: int) -> HttpResponse:
    """A second person disagrees; the operation stays as it is."""

    def call(form: forms.Form) -> None:
        closing.reject(
            engine=default_engine(),
            proposal_id=proposal_id,
            note=form.cleaned_data["note"],
            actor=actor_of(request),
        )

    _proposal_or_404(operation_id, proposal_id)
    return _act(request, operation_id, AnswerForm, "answer_form", call, then="operation")


@require_POST
@allows(Act.DECIDE)
def clear_attention(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """A flag goes, with a reason."""

    def call(form: forms.Form) -> None:
        clearing.clear_attention(
            engine=default_engine(),
            operation_id=operation_id,
            attention=Attention(form.cleaned_data["attention"]),
            reason=form.cleaned_data["reason"],
            revision=form.cleaned_data["revision"],
            actor=actor_of(request),
        )

    return _act(request, operation_id, ClearFlagForm, "flag_form", call, then="operation")


def _act(
    request: ConsoleRequest,
    operation_id: UUID,
    form_class: type[forms.Form],
    name: str,
    call: Callable[[forms.Form], None],
    *,
    then: str,
) -> HttpResponse:
    """Validate, call, and come back to the operation's page with what was wrong, if anything."""
    dossier_or_404(operation_id)
    form = form_class(request.POST)
    stale = False
    if form.is_valid():
        try:
            call(form)
            return redirect(then, operation_id)
        except StaleView:
            stale = True
        except ClosingRefused as refusal:
            _show_refusal(form, refusal)
    dossier = dossier_or_404(operation_id)
    context = context_of(request, dossier) | {name: form, "refused": form.non_field_errors()}
    if stale:
        context["changes"] = changes_since(dossier, form.cleaned_data["seen"])
    return answer(request, "operations/operation.html", context, status=409 if stale else 422)


def _fresh_form(dossier: Dossier, outcome: str | None) -> ClosingForm:
    chosen = outcome if outcome in list(ClosingOutcome) else None
    return ClosingForm(
        initial={
            "outcome": chosen,
            "revision": dossier.operation.revision,
            "seen": dossier.seen,
        }
    )


def _stale(request: ConsoleRequest, form: ClosingForm) -> Callable[[Dossier], HttpResponse]:
    """409: what changed, with the note kept and the choice of outcome cleared."""

    def page(dossier: Dossier) -> HttpResponse:
        kept = _fresh_form(dossier, None)
        for name in ("kind", "reference", "note"):
            kept.initial[name] = form.cleaned_data.get(name, "")
        more = {
            "stale": True,
            "changes": changes_since(dossier, form.cleaned_data["seen"]),
            "decision": newest_decision(dossier),
            "cleared": form.cleaned_data.get("outcome"),
        }
        return _decision_page(request, dossier, kept, status=409, **more)

    return page


def _decision_page(
    request: ConsoleRequest,
    dossier: Dossier,
    form: ClosingForm,
    *,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    engine = default_engine()
    if not Policy.is_on(PolicyName.CLOSE_BY_ABSENCE):
        kinds: Any = form.fields["kind"]
        kinds.choices = [row for row in kinds.choices if row[0] != EvidenceKind.ABSENT_IN_LOOKUP]
    context = context_of(request, dossier) | {
        "form": form,
        "second_person": {
            outcome.value: why_second_person(engine, dossier.operation, outcome, engine.clock())
            for outcome in ClosingOutcome
        },
    }
    return answer(request, "operations/close.html", context | more, status=status)


def _show_refusal(form: forms.Form, refusal: ClosingRefused) -> None:
    field = refusal.field if refusal.field in form.fields else None
    form.add_error(field, str(refusal))


def _proposal_or_404(operation_id: UUID, proposal_id: int) -> Proposal:
    return get_object_or_404(Proposal, pk=proposal_id, operation=operation_id)
