"""Deciding: closing, the second person's answer, clearing a flag, and the receipt."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from operations.console.changes import changes_since, newest_decision
from operations.console.forms import AnswerForm, ClearFlagForm, ClosingForm, typed_amount_problem
from operations.console.keeping import kept_fields
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows, prove_again
from operations.console.proving import proved_recently
from operations.console.saying import in_words, show_refusal
from operations.console.views.operation import context_of, dossier_or_404
from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.domain.statuses import Attention
from operations.models import Policy, PolicyName, Proposal
from operations.queries.dossier import Dossier
from operations.services import clearing, closing, reopening
from operations.services.claiming import refuse_others
from operations.services.engine import default_engine
from operations.services.weighing import (
    ClosingRefused,
    StaleView,
    above_limit,
    checked_refund,
    look_at_reference,
    refuse_mere_absence,
    why_second_person,
)


@require_http_methods(["GET", "HEAD", "POST"])
@allows(Act.DECIDE)
def close(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """The decision page. An outcome stands there only when a link or the person chose it."""
    dossier = dossier_or_404(operation_id)
    if request.method != "POST":
        fresh = _fresh_form(dossier, request.GET.get("outcome"))
        fresh.initial.update(kept_fields(request))
        return _decision_page(request, dossier, fresh)
    form = ClosingForm(request.POST)
    step = request.POST.get("step", "check")
    if step == "edit":
        return _decision_page(request, dossier, _unchecked(form))
    if form.is_valid() and form.cleaned_data["revision"] != dossier.operation.revision:
        return _stale(request, form)(dossier)
    if not form.is_valid():
        return _decision_page(request, dossier, form, status=422)
    if dossier.waiting is not None:
        return _stale(request, form)(dossier)
    typed = request.POST.get("typed", "")
    try:
        if step != "record":
            return _check_page(request, dossier, form)
        if _wants_typing(dossier) and typed_amount_problem(typed, dossier.operation.money):
            return _check_page(request, dossier, form, typed=typed)
        if _wants_typing(dossier) and not proved_recently(request):
            return prove_again(request, reverse("close", args=[operation_id]))
        proposal = closing.close(
            engine=default_engine(),
            operation_id=operation_id,
            decision=form.decision(),
            actor=actor_of(request),
        )
    except StaleView:
        return _stale(request, form)(dossier_or_404(operation_id))
    except ClosingRefused as refusal:
        status = show_refusal(form, refusal)
        return _decision_page(request, dossier_or_404(operation_id), form, status=status)
    return redirect("operation" if proposal else "receipt", operation_id)


@require_GET
@allows(Act.DECIDE)
def reference(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """What a reference is, while it is typed: read at the provider, nothing recorded."""
    dossier = dossier_or_404(operation_id)
    text = request.GET.get("reference", "")[:255]
    result, why = look_at_reference(
        engine=default_engine(), operation_id=operation_id, reference=text
    )
    context = {
        "operation": dossier.operation,
        "reference": text,
        "result": result.value,
        "why": in_words(why) if why else "",
        "outcome": request.GET.get("outcome", ""),
    }
    return answer(request, "operations/close_reference.html", context, part="found")


def _check_page(
    request: ConsoleRequest, dossier: Dossier, form: ClosingForm, *, typed: str | None = None
) -> HttpResponse:
    """What would be recorded, in full, before it is. The refund is read live; nothing changes.

    Raises ClosingRefused.
    """
    engine = default_engine()
    operation = dossier.operation
    decision = form.decision()
    refuse_others(operation, actor=actor_of(request), now=engine.clock())
    refund = checked_refund(engine, operation.pk, decision)
    refuse_mere_absence(engine, operation, decision)
    alone = decision.evidence_kind is EvidenceKind.ABSENT_IN_LOOKUP
    more = {
        "checking": True,
        "kept_fields": list(form.fields),
        "refund": refund,
        "reasons": why_second_person(
            engine, operation, decision.outcome, engine.clock(), absence_alone=alone
        ),
        "wants_typing": _wants_typing(dossier),
        "typed": typed or "",
        "typed_problem": typed_amount_problem(typed, operation.money) if typed is not None else "",
    }
    return _decision_page(request, dossier, form, status=200 if typed is None else 422, **more)


def _wants_typing(dossier: Dossier) -> bool:
    """Whether the amount is above the limit for one person, and so is typed out."""
    return above_limit(default_engine(), dossier.operation)


def _unchecked(form: ClosingForm) -> ClosingForm:
    """The same form to go on with, its words as they were typed."""
    return ClosingForm(initial={name: form[name].value() for name in form.fields})


@require_GET
@allows(Act.READ)
def receipt(request: ConsoleRequest, operation_id: UUID, number: int | None = None) -> HttpResponse:
    """Who decided it, when, on which evidence: a page to keep, under the number of its entry."""
    dossier = dossier_or_404(operation_id)
    decision = newest_decision(dossier, number)
    if decision is None:
        raise Http404
    if number is None:
        return redirect("receipt-of", operation_id, decision.entry.number)
    context = context_of(request, dossier) | {"decision": decision}
    return answer(request, "operations/receipt.html", context)


@require_POST
@allows(Act.APPROVE)
def approve(request: ConsoleRequest, operation_id: UUID, proposal_id: int) -> HttpResponse:
    """A second person agrees, and the operation is closed."""

    proposal = _proposal_or_404(operation_id, proposal_id)
    if _wants_typing(dossier_or_404(operation_id)) and not proved_recently(request):
        return prove_again(request, reverse("operation", args=[operation_id]))
    agree = reopening.approve_reopening if proposal.reopens else closing.approve

    def call(form: forms.Form) -> None:
        agree(
            engine=default_engine(),
            proposal_id=proposal_id,
            revision=form.cleaned_data["revision"],
            note=form.cleaned_data["note"],
            actor=actor_of(request),
        )

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
    stale, status = False, 422
    if form.is_valid():
        try:
            call(form)
            return redirect(then, operation_id)
        except StaleView:
            stale, status = True, 409
        except ClosingRefused as refusal:
            status = show_refusal(form, refusal)
    dossier = dossier_or_404(operation_id)
    context = context_of(request, dossier) | {name: form, "refused": form.non_field_errors()}
    if stale:
        context["changes"] = changes_since(dossier, form.cleaned_data["seen"])
    return answer(request, "operations/operation.html", context, status=status)


def _fresh_form(dossier: Dossier, outcome: str | None) -> ClosingForm:
    chosen = outcome if outcome in list(ClosingOutcome) else None
    return ClosingForm(
        initial={
            "outcome": chosen,
            "revision": dossier.operation.revision,
            "seen": dossier.seen,
            "form_token": uuid4(),
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
            "same_form": _is_recorded(dossier, form.token()),
        }
        return _decision_page(request, dossier, kept, status=409, **more)

    return page


def _is_recorded(dossier: Dossier, token: str) -> bool:
    """Whether this very form was recorded before, as a decision or as a proposal."""
    decision = newest_decision(dossier)
    return (decision is not None and decision.evidence.facts.get("form") == token) or any(
        row.form_token == token for row in dossier.proposals
    )


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


def _proposal_or_404(operation_id: UUID, proposal_id: int) -> Proposal:
    return get_object_or_404(Proposal, pk=proposal_id, operation=operation_id)
