"""Reports of the provider: taking one in, looking at what it would do, letting it be applied."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from operations.console.downloads import csv_download
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.reaching import account_within
from operations.console.report_forms import ReportForm
from operations.console.saying import in_words
from operations.domain.money import Money
from operations.domain.report_preview import Preview
from operations.jobs import wake_report
from operations.models import Account, ReportFile
from operations.models.report_file import ReportRow, ReportState, RowResult
from operations.queries.access import narrowed
from operations.queries.reports import PAGE, lines_to_show, result_lines
from operations.services.accounts import UnknownAccount
from operations.services.disclosing import note_disclosure
from operations.services.engine import default_engine
from operations.services.reporting import ReportRefused, let_apply, receive_report

#: How many imports the page lists.
_LISTED = 25


@require_GET
@allows(Act.READ, narrows=True)
def reports(request: ConsoleRequest) -> HttpResponse:
    """The newest imports, and a form for another."""
    return _page(request, ReportForm())


@require_POST
@allows(Act.DECIDE, narrows=True)
def upload(request: ConsoleRequest) -> HttpResponse:
    """Take a file in. Nothing is changed before somebody has looked at it."""
    # Reading what was posted is what runs the guard.
    posted, files = request.POST, request.FILES
    if getattr(request, "upload_too_large", False):
        form = ReportForm(posted)
        form.full_clean()
        form.errors.pop("file", None)
        form.add_error(
            "file",
            _("The file is larger than %(most)s MiB. Split it, or export fewer columns.")
            % {"most": settings.RECONCILE.report_max_mb},
        )
        return _page(request, form, status=413)
    form = ReportForm(posted, files)
    if not form.is_valid():
        return _page(request, form, status=400)
    engine = default_engine()
    file = form.cleaned_data["file"]
    try:
        report = receive_report(
            engine=engine,
            account=account_within(request, form.cleaned_data["account"]),
            name=file.name,
            file=file,
            mapping=form.mapping(),
            most_bytes=settings.RECONCILE.report_max_mb * 2**20,
            actor=actor_of(request),
        )
    except UnknownAccount:
        form.add_error("account", _("There is no account of this name."))
        return _page(request, form, status=400)
    except ReportRefused as error:
        form.add_error("file", in_words(error.sentence))
        return _page(request, form, status=400)
    wake_report(report.pk)
    return redirect("report", report.pk)


def _page(request: ConsoleRequest, form: ReportForm, *, status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "reports": ReportFile.objects.filter(**narrowed(request.accounts))
        .select_related("account")
        .order_by("-pk")[:_LISTED],
        "accounts": list(
            Account.objects.filter(
                livemode=settings.RECONCILE.livemode, **narrowed(request.accounts, "pk")
            ).order_by("name")
        ),
        "most_mb": settings.RECONCILE.report_max_mb,
    }
    return answer(request, "operations/reports.html", context, status=status)


@require_GET
@allows(Act.READ)
def report(request: ConsoleRequest, report_id: int) -> HttpResponse:
    """How far it is, what it would do or did, and its lines."""
    return answer(
        request, "operations/report.html", _context(request, _report(report_id)), part="report"
    )


@require_POST
@allows(Act.DECIDE)
def apply(request: ConsoleRequest, report_id: int) -> HttpResponse:
    """Let what was shown be applied."""
    found = _report(report_id)
    try:
        let_apply(engine=default_engine(), report_id=report_id, actor=actor_of(request))
    except ReportRefused as error:
        context = _context(request, found) | {"refused": in_words(error.sentence)}
        return answer(request, "operations/report.html", context, part="report", status=409)
    wake_report(report_id)
    return redirect("report", report_id)


@require_GET
@allows(Act.EXPORT)
def report_results(request: ConsoleRequest, report_id: int) -> HttpResponse:
    """Every line with its result, as CSV, while it is read from the database."""
    found = _report(report_id)
    note_disclosure(
        engine=default_engine(),
        actor=actor_of(request),
        action="exported",
        what={"what": "report_results", "report": found.pk},
    )
    return csv_download(result_lines(found), name=f"report-{found.pk}.csv")


def _report(report_id: int) -> ReportFile:
    found = ReportFile.objects.select_related("account").filter(pk=report_id).first()
    if found is None:
        raise Http404
    return found


def _context(request: ConsoleRequest, found: ReportFile) -> dict[str, Any]:
    kind = request.GET.get("kind", "")
    kind = kind if kind in set(Preview) else ""
    after = request.GET.get("after", "")
    place = int(after) if after.isdecimal() and len(after) < 19 else 0
    lines = lines_to_show(found, kind=kind, after=place)
    return {
        "report": found,
        "in_work": found.state in (ReportState.READING, ReportState.APPLYING),
        "kind": kind,
        "after": after,
        "lines": [(row, _money(row)) for row in lines[:PAGE]],
        "more_after": lines[PAGE - 1].line if len(lines) > PAGE else None,
        "foreseen": [(kind_, found.previewed.get(kind_, 0)) for kind_ in Preview],
        "results": [
            (result.value, result.label, found.results[result])
            for result in RowResult
            if found.results.get(result)
        ],
        "percent_read": 100 * found.read_bytes // max(1, found.size_bytes),
        "percent_applied": 100 * found.applied_rows // max(1, found.rows),
        "failed": found.results.get(RowResult.FAILED, 0),
    }


def _money(row: ReportRow) -> Money | None:
    return Money(row.amount, row.currency) if row.amount is not None else None
