"""Fetching the events that no webhook brought: how far it is, what it came to, starting it."""

from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.reaching import account_within
from operations.console.saying import in_words
from operations.domain.backfilling import SinceRefused, read_since
from operations.jobs import wake_backfill
from operations.models import Account, BackfillRun, BackfillState, Handling
from operations.queries.access import narrowed
from operations.queries.backfills import changes_of
from operations.services.accounts import UnknownAccount
from operations.services.backfilling import BackfillRefused, go_on, start_backfill
from operations.services.engine import default_engine

#: How many runs the page shows.
_LISTED = 10


@require_GET
@allows(Act.READ, narrows=True)
def backfill(request: ConsoleRequest) -> HttpResponse:
    """The newest runs with what they came to, and a form for another."""
    return _page(request)


@require_POST
@allows(Act.DECIDE, narrows=True)
def start(request: ConsoleRequest) -> HttpResponse:
    """Begin to fetch. It reads only; what is new goes the way of every webhook."""
    engine = default_engine()
    since, name = request.POST.get("since", ""), request.POST.get("account", "")
    try:
        run = start_backfill(
            engine=engine,
            account=account_within(request, name),
            since=read_since(since, now=engine.clock()),
            actor=actor_of(request),
        )
    except UnknownAccount:
        return _page(request, since=since, wrong=_("There is no account of this name."))
    except (SinceRefused, BackfillRefused) as error:
        return _page(request, since=since, wrong=in_words(error.sentence))
    wake_backfill(run.pk)
    return redirect("backfill")


@require_POST
@allows(Act.DECIDE)
def resume(request: ConsoleRequest, run_id: int) -> HttpResponse:
    """Let a run that was stopped go on where it was."""
    if not BackfillRun.objects.filter(pk=run_id).exists():
        raise Http404
    try:
        go_on(engine=default_engine(), run_id=run_id, actor=actor_of(request))
    except BackfillRefused as error:
        return _page(request, wrong=in_words(error.sentence), status=409)
    wake_backfill(run_id)
    return redirect("backfill")


def _page(
    request: ConsoleRequest, *, since: str = "6h", wrong: str = "", status: int = 200
) -> HttpResponse:
    accounts = request.rights.accounts(Act.READ)
    found = BackfillRun.objects.filter(**narrowed(accounts)).select_related("account")
    runs = list(found.order_by("-pk")[:_LISTED])
    offered = Account.objects.filter(
        livemode=settings.RECONCILE.livemode, **narrowed(accounts, "pk")
    ).order_by("name")
    shown = [(run, run.read - run.stored, _changes(run)) for run in runs]
    context = {
        "runs": shown,
        # New events are handled after they were fetched.
        "in_work": any(
            run.state == BackfillState.RUNNING or any(not name for name, _words, _count in changes)
            for run, _known, changes in shown
        ),
        "accounts": list(offered),
        "since": since,
        "wrong": wrong,
        "quiet_minutes": settings.RECONCILE.backfill_when_quiet_s // 60,
    }
    if wrong and status == 200:
        status = 400
    return answer(request, "operations/backfill.html", context, part="runs", status=status)


def _changes(run: BackfillRun) -> list[tuple[str, str, int]]:
    if not run.stored:
        return []
    return [
        (handling, Handling(handling).label, count)
        for handling, count in sorted(changes_of(run).items())
    ]
