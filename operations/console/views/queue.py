"""The queue, the search and the health strip."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from operations.console.filters import fields_of, kept_query, narrow_of, read_filters
from operations.console.key_list import KEYS
from operations.console.live import mark_of, unchanged
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, allows
from operations.console.queue_lines import lines_of
from operations.queries.choices import choices
from operations.queries.figures import health_lately
from operations.queries.marks import queue_mark
from operations.queries.parts import Asked
from operations.queries.queue import queue_page, rows_of
from operations.queries.queue_counts import view_counts
from operations.queries.search import clean_query, find
from operations.queries.stretches import STRETCHES, Order, View, order_of
from operations.queries.views import Kept, views_of
from operations.services.engine import default_engine

VIEW_NAMES: Mapping[View, Promise] = {
    View.DECIDE: _("Needs a decision"),
    View.MINE: _("Mine"),
    View.SECOND: _("Waiting for second person"),
    View.ALL: _("All"),
}
ORDER_NAMES: Mapping[Order, Promise] = {
    Order.URGENCY: _("Most urgent first"),
    Order.OLDEST: _("Oldest first"),
    Order.NEWEST: _("Newest first"),
    Order.AMOUNT: _("Largest first, by currency"),
}


@require_GET
@allows(Act.READ, narrows=True)
def queue(request: ConsoleRequest) -> HttpResponse:
    """One page of a view, in the order in which it should be looked at."""
    now = default_engine().clock()
    person = str(request.user.pk)
    view = view_of(request.GET.get("view", ""))
    mark = mark_of(request, request.GET.urlencode(), *queue_mark(view), now=now)
    if same := unchanged(request, mark, now=now):
        return same
    order = order_of(view, request.GET.get("sort", ""))
    offered = choices(now, request.accounts)
    filters = read_filters(request.GET, choices=offered, person=person)
    narrow = narrow_of(filters.understood, person)
    asked = Asked(
        view=view, person=person, now=now, order=order, narrow=narrow, accounts=request.accounts
    )
    after = request.GET.get("after", "")
    page = queue_page(asked, after=after)
    address = query_of(view, order, filters.understood)
    ticks = Act.BULK in request.acts
    tabs = _tabs(
        asked,
        views_of(person, shared=request.accounts is None),
        address,
        request.GET.get("saved", ""),
    )
    context = {
        "view": view,
        "view_name": VIEW_NAMES[view],
        "tabs": tabs,
        "here": next(tab for tab in tabs if tab["is_here"]),
        "filters": filters,
        "fields": list(fields_of(request.GET, filters, choices=offered, person=person)),
        "orders": [(name, ORDER_NAMES[name], name == order) for name in STRETCHES[view]],
        "order": order,
        "order_name": ORDER_NAMES[order],
        "page": page,
        "lines": lines_of(page.rows, person=person, now=now, ticks=ticks),
        "ticks": ticks,
        "after": after,
        "address": address,
        "is_narrowed": bool(filters.understood),
        "may_share": Act.APPROVE in request.rights.everywhere,
    }
    return answer(request, "operations/queue.html", context, part="list", mark=mark)


@require_GET
@allows(Act.READ, narrows=True)
def search(request: ConsoleRequest) -> HttpResponse:
    """Any id: one hit opens it, several are listed."""
    text = clean_query(request.GET.get("q", ""))
    found = find(text, request.accounts)
    if len(found) == 1:
        return redirect("operation", found[0])
    now = default_engine().clock()
    rows = rows_of(found, now=now) if found else []
    lines = lines_of(rows, person=str(request.user.pk), now=now)
    return answer(request, "operations/search.html", {"query": text, "lines": lines})


@require_GET
@allows(Act.READ, narrows=True)
def health_strip(request: ConsoleRequest) -> HttpResponse:
    """How the system is doing; the strip asks for it every ten seconds."""
    found, now = health_lately(request.accounts), default_engine().clock()
    mark = mark_of(request, found, now=now)
    return unchanged(request, mark, now=now) or answer(
        request, "operations/health.html", {"health": found}, part="strip", mark=mark
    )


@require_GET
@allows(Act.READ, narrows=True)
def keys_help(request: ConsoleRequest) -> HttpResponse:
    """All keys, as a page and as what `?` shows over another one."""
    return answer(request, "operations/keys_help.html", {"groups": KEYS}, part="keys")


def view_of(text: str) -> View:
    """The view of this name, or the one that people come for."""
    return View(text) if text in set(View) else View.DECIDE


def query_of(view: View, order: Order, understood: Mapping[str, str]) -> str:
    """What an address says of a list, but for its page: always in the same words."""
    query = QueryDict(mutable=True)
    query["view"] = str(view)
    if order is not order_of(view, ""):
        query["sort"] = str(order)
    query.update(dict(sorted(understood.items())))
    return query.urlencode()


def _tabs(asked: Asked, kept: list[Kept], address: str, saved: str) -> list[dict[str, Any]]:
    """The views and the saved ones with their counts; one of them is where we are."""
    lists = [_asked_of(view.query, asked) for view in kept]
    counts = view_counts(asked.person, asked.now, lists, asked.accounts)
    tabs: list[dict[str, Any]] = [
        {"name": VIEW_NAMES[view], "query": f"view={view}", "view": str(view)} for view in View
    ]
    tabs += [
        {"name": view.name, "query": f"{view.query}&saved={view.id}", "saved": view}
        for view in kept
    ]
    here = 0
    for number, (tab, count) in enumerate(zip(tabs, counts, strict=True)):
        tab["count"], tab["is_here"] = count, False
        view = tab.get("saved")
        if view is None and tab["view"] == asked.view:
            here = number
        if view is not None and saved == str(view.id) and view.query == address:
            here = number
    tabs[here]["is_here"] = True
    return tabs


def _asked_of(query: str, asked: Asked) -> Asked:
    names = kept_query(query)
    view = view_of(names.get("view", ""))
    return Asked(
        view=view,
        person=asked.person,
        now=asked.now,
        order=order_of(view, names.get("sort", "")),
        narrow=narrow_of(names, asked.person),
        accounts=asked.accounts,
    )
