"""The queue, the search and the health strip."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from operations.console.filters import QueueFilter
from operations.console.keys import KEYS
from operations.console.live import mark_of, unchanged
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, allows
from operations.queries.figures import COUNT_CAP, health_lately
from operations.queries.marks import queue_mark
from operations.queries.queue import View, operations_of, queue_page, view_counts
from operations.queries.search import clean_query, find
from operations.services.engine import default_engine

_VIEW_NAMES = {
    View.DECIDE: "Needs a decision",
    View.SECOND: "Waiting for second person",
    View.ALL: "All",
}


@require_GET
@allows(Act.READ)
def queue(request: ConsoleRequest) -> HttpResponse:
    """One page of a view, in the order in which it should be looked at."""
    view = _view(request.GET.get("view", ""))
    now = default_engine().clock()
    mark = mark_of(request, request.GET.urlencode(), *queue_mark(view), now=now)
    if same := unchanged(request, mark, now=now):
        return same
    filters = QueueFilter(request.GET, queryset=operations_of(view), request=request)
    page = queue_page(
        view=view,
        operations=filters.qs,
        after=request.GET.get("after", ""),
        now=now,
    )
    counts = view_counts()
    kept = request.GET.copy()
    kept.pop("after", None)
    context = {
        "view": view,
        "view_name": _VIEW_NAMES[view],
        "tabs": [(name, _VIEW_NAMES[name], counts[name]) for name in View],
        "count": counts[view],
        "count_cap": COUNT_CAP,
        "filters": filters,
        "page": page,
        "after": request.GET.get("after", ""),
        "kept_query": kept.urlencode(),
    }
    return answer(request, "operations/queue.html", context, part="list", mark=mark)


@require_GET
@allows(Act.READ)
def search(request: ConsoleRequest) -> HttpResponse:
    """Any id: one hit opens it, several are listed."""
    text = clean_query(request.GET.get("q", ""))
    rows = find(text, now=default_engine().clock())
    if len(rows) == 1:
        return redirect("operation", rows[0].operation.pk)
    return answer(request, "operations/search.html", {"query": text, "rows": rows})


@require_GET
@allows(Act.READ)
def health_strip(request: ConsoleRequest) -> HttpResponse:
    """How the system is doing; the strip asks for it every ten seconds."""
    found, now = health_lately(), default_engine().clock()
    mark = mark_of(request, found, now=now)
    return unchanged(request, mark, now=now) or answer(
        request, "operations/health.html", {"health": found}, part="strip", mark=mark
    )


@require_GET
@allows(Act.READ)
def keys_help(request: ConsoleRequest) -> HttpResponse:
    """All keys, as a page and as what `?` shows over another one."""
    return answer(request, "operations/keys.html", {"groups": KEYS}, part="keys")


def _view(text: str) -> View:
    try:
        return View(text)
    except ValueError:
        return View.DECIDE
