"""Refunds without an operation, totals that don't add up, and where the money is."""

from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods

from operations.console.forms import LinkForm, OutsideForm
from operations.console.keeping import kept_fields, kept_orphan_forms
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import show_refusal
from operations.models import Discrepancy, ProviderRefund
from operations.queries.conservation import payment_sheet
from operations.queries.figures import COUNT_CAP
from operations.queries.money_counted import money_counted
from operations.queries.orphans import OrphanView, described, orphan_counts, orphan_page
from operations.queries.search import as_uuid, clean_query
from operations.services.engine import default_engine
from operations.services.orphans import (
    OrphanRefused,
    close_discrepancy,
    link_refund,
    mark_outside,
)
from operations.services.weighing import StaleView

_VIEW_NAMES = {
    OrphanView.PAYMENTS: gettext_lazy("On our payments"),
    OrphanView.TOTALS: gettext_lazy("Totals"),
    OrphanView.EVENTS: gettext_lazy("Events"),
    OrphanView.ELSEWHERE: gettext_lazy("Elsewhere"),
    OrphanView.OUTSIDE: gettext_lazy("Made outside"),
}


@require_GET
@allows(Act.READ, narrows=True)
def orphans(request: ConsoleRequest) -> HttpResponse:
    """One list of what nothing ties to an operation."""
    view = _view(request.GET.get("view", ""))
    query = clean_query(request.GET.get("find", ""))
    environment = default_engine().environment
    after = request.GET.get("after", "")
    counts = orphan_counts(environment, request.accounts)
    kept = request.GET.copy()
    kept.pop("after", None)
    context = {
        "view": view,
        "ticks": Act.BULK in request.rights.anywhere
        and view in (OrphanView.PAYMENTS, OrphanView.ELSEWHERE),
        "view_name": _VIEW_NAMES[view],
        "tabs": [(name, _VIEW_NAMES[name], counts[name]) for name in OrphanView],
        "count_cap": COUNT_CAP,
        "page": orphan_page(
            view=view,
            query=query,
            after=after,
            environment=environment,
            accounts=request.accounts,
        ),
        "find": query,
        "after": after,
        "kept_query": kept.urlencode(),
    }
    return answer(request, "operations/orphans.html", context)


@require_http_methods(["GET", "HEAD"])
@allows(Act.READ)
def orphan(request: ConsoleRequest, refund_id: int) -> HttpResponse:
    """One refund without an operation, held against what it may belong to."""
    return _orphan_page(request, _refund_or_404(refund_id), **kept_orphan_forms(request))


@require_http_methods(["POST"])
@allows(Act.DECIDE)
def link(request: ConsoleRequest, refund_id: int) -> HttpResponse:
    """Tie it to an operation, after a live comparison."""
    refund = _refund_or_404(refund_id)
    form = LinkForm(request.POST)
    if not form.is_valid():
        return _orphan_page(request, refund, link_form=form, status=422)
    try:
        link_refund(
            engine=default_engine(),
            refund_id=refund_id,
            link=form.link(),
            actor=actor_of(request),
        )
    except StaleView:
        message = _("The operation changed since this page was made. Nothing was linked.")
        form.add_error(None, message)
        return _orphan_page(request, _refund_or_404(refund_id), link_form=form, status=409)
    except OrphanRefused as refusal:
        show_refusal(form, refusal)
        return _orphan_page(request, _refund_or_404(refund_id), link_form=form, status=422)
    return redirect("operation", form.cleaned_data["operation"])


@require_http_methods(["POST"])
@allows(Act.DECIDE)
def outside(request: ConsoleRequest, refund_id: int) -> HttpResponse:
    """It was made by somebody else."""
    refund = _refund_or_404(refund_id)
    form = OutsideForm(request.POST)
    if form.is_valid():
        try:
            mark_outside(
                engine=default_engine(),
                refund_id=refund_id,
                reason=form.cleaned_data["reason"],
                actor=actor_of(request),
            )
            return redirect("orphan", refund_id)
        except OrphanRefused as refusal:
            show_refusal(form, refusal)
    return _orphan_page(request, refund, outside_form=form, status=422)


@require_http_methods(["GET", "HEAD", "POST"])
@allows(Act.READ)
def total(request: ConsoleRequest, discrepancy_id: int) -> HttpResponse:
    """A payment whose total is more than the refunds that we know; a person may answer for it."""
    row = get_object_or_404(
        Discrepancy.objects.select_related("payment__account"), pk=discrepancy_id
    )
    posted = request.method == "POST"
    form = OutsideForm(request.POST) if posted else OutsideForm(initial=kept_fields(request))
    status = 200
    if posted:
        if Act.DECIDE not in request.acts:
            raise PermissionDenied
        status = 422
        if form.is_valid():
            try:
                close_discrepancy(
                    engine=default_engine(),
                    discrepancy_id=discrepancy_id,
                    reason=form.cleaned_data["reason"],
                    actor=actor_of(request),
                )
                return redirect("orphan-total", discrepancy_id)
            except OrphanRefused as refusal:
                show_refusal(form, refusal)
    sheet = payment_sheet(row.payment)
    context = {
        "row": row,
        "sheet": sheet,
        "difference": sheet.money(row.difference),
        "provider_total": sheet.money(row.provider_total),
        "known_total": sheet.money(row.known_total),
        "operations": row.payment.operations.order_by("created_at", "pk"),
        "form": form,
    }
    return answer(request, "operations/orphan_total.html", context, status=status)


@require_GET
@allows(Act.READ, narrows=True)
def money(request: ConsoleRequest) -> HttpResponse:
    """What was captured, what is out for sure, and what may be out, by account and currency."""
    counted = money_counted(livemode=settings.RECONCILE.livemode, accounts=request.accounts)
    context = {
        "tables": [(counted.in_all, _("In all")), (counted.by_account, _("By account"))],
        "counted": counted,
    }
    return answer(request, "operations/money.html", context)


def _orphan_page(
    request: ConsoleRequest, refund: ProviderRefund, *, status: int = 200, **forms: Any
) -> HttpResponse:
    kept = forms["link_form"]["operation"].value() if "link_form" in forms else ""
    typed = clean_query(request.GET.get("operation", "") or str(kept or ""))
    named = as_uuid(typed)
    (row,) = described([refund], also=named)
    found = {candidate.operation.pk for candidate in row.candidates}
    context = {"row": row, "typed": typed, "typed_missing": bool(typed) and named not in found}
    return answer(request, "operations/orphan.html", context | forms, status=status)


def _refund_or_404(refund_id: int) -> ProviderRefund:
    rows = ProviderRefund.objects.select_related("account", "operation", "made_outside")
    return get_object_or_404(rows, pk=refund_id)


def _view(text: str) -> OrphanView:
    try:
        return OrphanView(text)
    except ValueError:
        return OrphanView.PAYMENTS
