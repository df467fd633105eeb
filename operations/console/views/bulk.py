"""Runs that act on many operations: what each will do, how far it is, and what came of it."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from operations.console.bulk_forms import BeginForm, BulkAnswerForm
from operations.console.bulk_lines import (
    button_of,
    groups_of,
    page_of_lines,
    reasons_of,
    results_shown,
    tallies_of,
    totals_of,
)
from operations.console.bulk_wording import ACTION, RESULT, STATE
from operations.console.downloads import csv_download
from operations.console.keeping import kept_fields
from operations.console.live import mark_of, unchanged
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows, prove_again
from operations.console.proving import proved_recently
from operations.console.saying import in_words, show_refusal
from operations.domain.bulk import BulkAction, Outlook
from operations.jobs import wake_bulk
from operations.models import BulkRun, BulkState
from operations.queries.bulk import (
    LISTED,
    is_large,
    result_lines,
    results_of,
    runs_of,
    runs_to_show,
)
from operations.services import bulk as services
from operations.services.bulk import PreviewStale
from operations.services.bulk_previewing import BulkRefused, look_anew
from operations.services.bulk_previewing import retry as preview_again
from operations.services.bulk_running import workers_for
from operations.services.disclosing import note_disclosure
from operations.services.engine import default_engine


@require_GET
@allows(Act.READ, narrows=True)
def runs(request: ConsoleRequest) -> HttpResponse:
    """The newest runs."""
    found = [(run, ACTION[run.action], STATE[run.state]) for run in runs_to_show(request.accounts)]
    return answer(request, "operations/bulk_runs.html", {"runs": found, "most": LISTED})


@require_GET
@allows(Act.READ, narrows=True)
def run(request: ConsoleRequest, bulk_id: int) -> HttpResponse:
    """What it will do, how far it is, or what came of it."""
    found, now = _run(request, bulk_id, Act.READ), default_engine().clock()
    facts = (found.pk, found.state, found.stopped_at, sorted(results_of(found).counts.items()))
    mark = mark_of(request, request.GET.urlencode(), *facts, now=now)
    if same := unchanged(request, mark, now=now):
        return same
    kept = kept_fields(request)
    more: dict[str, Any] = {"answer_form": BulkAnswerForm(initial=kept)} if kept else {}
    return _page(request, found, _fresh_form(found, **kept), mark=mark, **more)


@require_POST
@allows(Act.READ, narrows=True)
def begin(request: ConsoleRequest, bulk_id: int) -> HttpResponse:
    """Let what the preview shows be done."""
    found = _run(request, bulk_id, Act.BULK)
    form = BeginForm(request.POST, action=found.action, people=_people(found))
    if found.state == BulkState.PREVIEWED and not form.is_valid():
        return _page(request, found, form, status=422)
    if _wants_proof(request, found, BulkState.PREVIEWED):
        return prove_again(request, reverse("bulk-run", args=[bulk_id]))
    try:
        # The same form once more: it has begun already.
        if found.state == BulkState.PREVIEWED:
            found = services.begin(
                engine=default_engine(),
                run_id=bulk_id,
                saying=form.begin(),
                actor=actor_of(request),
            )
            _wake(found)
    except PreviewStale as stale:
        return _stale(request, found, form, stale)
    except BulkRefused as refusal:
        show_refusal(form, refusal)
        return _page(request, found, form, status=422)
    return redirect("bulk-run", bulk_id)


def _stale(
    request: ConsoleRequest, found: BulkRun, form: BeginForm, stale: PreviewStale
) -> HttpResponse:
    """The list as it is now, with what changed; what was typed stays, but for the number."""
    fresh = look_anew(engine=default_engine(), run_id=found.pk, ids=(), actor=actor_of(request))
    typed = {name: form.cleaned_data[name] for name in ("note", "kind", "reference", "assignee")}
    context: dict[str, Any] = {
        "is_stale": True,
        "moved": [row.operation for row in stale.moved if row.operation],
    }
    return _page(request, fresh, _fresh_form(fresh, **typed), status=409, **context)


@require_POST
@allows(Act.READ, narrows=True)
def approve(request: ConsoleRequest, bulk_id: int) -> HttpResponse:
    """A second person lets it begin."""
    found = _run(request, bulk_id, Act.APPROVE)
    if _wants_proof(request, found, BulkState.WAITING):
        return prove_again(request, reverse("bulk-run", args=[bulk_id]))
    return _answer(request, found, services.approve)


@require_POST
@allows(Act.READ, narrows=True)
def reject(request: ConsoleRequest, bulk_id: int) -> HttpResponse:
    """A second person turns it down, or who proposed it takes it back."""
    found = _run(request, bulk_id, Act.BULK)
    is_anothers = found.state == BulkState.WAITING and found.made_by != str(request.user.pk)
    if is_anothers and not _may(request, bulk_id, Act.APPROVE):
        raise PermissionDenied
    return _answer(request, found, services.reject)


def _answer(
    request: ConsoleRequest, found: BulkRun, decide: Callable[..., BulkRun]
) -> HttpResponse:
    form = BulkAnswerForm(request.POST)
    if not form.is_valid():
        context: dict[str, Any] = {"answer_form": form}
        return _page(request, found, _fresh_form(found), status=422, **context)
    try:
        note = form.cleaned_data["note"]
        found = decide(engine=default_engine(), run_id=found.pk, note=note, actor=actor_of(request))
    except BulkRefused as refusal:
        context = {"answer_form": form, "refused": in_words(refusal.sentence)}
        return _page(request, found, _fresh_form(found), status=409, **context)
    _wake(found)
    return redirect("bulk-run", found.pk)


@require_POST
@allows(Act.READ, narrows=True)
def stop(request: ConsoleRequest, bulk_id: int) -> HttpResponse:
    """Leave alone what has not had its turn."""
    found = _run(request, bulk_id, Act.BULK)
    try:
        services.stop(engine=default_engine(), run_id=bulk_id, actor=actor_of(request))
    except BulkRefused as refusal:
        context = {"refused": in_words(refusal.sentence)}
        return _page(request, found, _fresh_form(found), status=409, **context)
    return redirect("bulk-run", bulk_id)


@require_POST
@allows(Act.READ, narrows=True)
def retry(request: ConsoleRequest, bulk_id: int) -> HttpResponse:
    """Look anew at what was not done, or at a preview as it stands now."""
    found, engine, actor = _run(request, bulk_id, Act.BULK), default_engine(), actor_of(request)
    try:
        if found.state == BulkState.ENDED:
            fresh = preview_again(engine=engine, run_id=bulk_id, actor=actor)
        else:
            fresh = look_anew(engine=engine, run_id=bulk_id, ids=(), actor=actor)
    except BulkRefused as refusal:
        messages.error(request, in_words(refusal.sentence))
        return redirect("bulk-run", bulk_id)
    return redirect("bulk-run", fresh.pk)


@require_GET
@allows(Act.READ, narrows=True)
def results(request: ConsoleRequest, bulk_id: int) -> HttpResponse:
    """Every row with its result, as CSV, while it is read from the database."""
    found = _run(request, bulk_id, Act.EXPORT)
    told = {"what": "bulk_results", "bulk_run": found.pk, "rows": found.rows}
    note_disclosure(engine=default_engine(), actor=actor_of(request), action="exported", what=told)
    return csv_download(result_lines(found), name=f"bulk-{found.pk}.csv")


def _run(request: ConsoleRequest, bulk_id: int, act: Act) -> BulkRun:
    """A run that this person may do this with. Of accounts that they don't read it is not there."""
    found = runs_of(request.rights.accounts(Act.READ)).filter(pk=bulk_id).first()
    if found is None:
        raise Http404
    if not _may(request, bulk_id, act):
        raise PermissionDenied
    return found


def _may(request: ConsoleRequest, bulk_id: int, act: Act) -> bool:
    accounts = request.rights.accounts(act)
    return accounts is None or runs_of(accounts).filter(pk=bulk_id).exists()


def _wants_proof(request: ConsoleRequest, run: BulkRun, state: BulkState) -> bool:
    """Whether deciding upon it in this state wants a sign-in that is not long ago."""
    return run.state == state and not proved_recently(request) and is_large(run)


def _wake(run: BulkRun) -> None:
    if run.state == BulkState.RUNNING:
        wake_bulk(run.pk, workers=workers_for(run))


def _fresh_form(run: BulkRun, **typed: Any) -> BeginForm:
    return BeginForm(action=run.action, people=_people(run), initial=typed | {"count": run.acts})


def _people(run: BulkRun) -> list[User]:
    """Whom it can be left to, while that is asked."""
    asks = run.action == BulkAction.ASSIGN and run.state == BulkState.PREVIEWED
    return services.people_for(run) if asks else []


def _page(
    request: ConsoleRequest,
    run: BulkRun,
    form: BeginForm,
    *,
    status: int = 200,
    mark: str = "",
    **more: Any,
) -> HttpResponse:
    show, after = request.GET.get("show", ""), request.GET.get("after", "")
    place = int(after) if after.isdecimal() and len(after) < 6 else 0
    context: dict[str, Any] = {
        "run": run,
        "form": form,
        "action": ACTION[run.action],
        "state": STATE[run.state],
        "may_bulk": _may(request, run.pk, Act.BULK),
        "may_export": _may(request, run.pk, Act.EXPORT),
        "may_approve": _may(request, run.pk, Act.APPROVE),
        "is_own": run.made_by == str(request.user.pk),
        "reasons": reasons_of(run),
        "tallies": tallies_of(run),
        "totals": totals_of(run),
        "after": after,
    }
    if run.state in (BulkState.PREVIEWED, BulkState.WAITING, BulkState.REJECTED):
        show = show if show in set(Outlook) else ""
        context |= {"groups": groups_of(run, show=show, after=place), "button": button_of(run)}
    else:
        show = show if show in RESULT else ""
        found = results_of(run)
        lines, more_after = page_of_lines(run, show=show, after=place)
        context |= {"results": found, "shown_results": results_shown(found)}
        context |= {"lines": lines, "more_after": more_after, "to_do": found.done + found.waiting}
    # The answer to a form has an address that can't be asked again.
    here = (
        request.get_full_path() if request.method == "GET" else reverse("bulk-run", args=[run.pk])
    )
    context |= {"show": show, "live": here} | more
    return answer(
        request, "operations/bulk_run.html", context, part="run", status=status, mark=mark
    )
