"""Answers with a page, or with the part of it that htmx asked for."""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from operations.console.live import stamp
from operations.console.permissions import Act, ConsoleRequest
from operations.queries.figures import health
from operations.services.engine import default_engine


def answer(
    request: ConsoleRequest,
    template: str,
    context: dict[str, Any],
    *,
    part: str = "",
    status: int = 200,
    mark: str = "",
) -> HttpResponse:
    """Render `template`, or only its partial `part` when htmx asks for one.

    `mark` is the ETag of what it shows, for a page with regions that keep themselves up to date.
    """
    alone = bool(part and request.htmx and not request.htmx.history_restore_request)
    now = default_engine().clock()
    shared: dict[str, Any] = {
        "now": now,
        "mark": mark,
        "livemode": settings.RECONCILE.livemode,
        "may_decide": Act.DECIDE in request.acts,
        "may_approve": Act.APPROVE in request.acts,
        "may_administer": Act.ADMINISTER in request.acts,
        "rights": {str(act) for act in request.rights.everywhere},
        "is_limited": Act.READ not in request.rights.everywhere,
    }
    if not alone:
        shared["health"] = health(request.rights.accounts(Act.READ))
    name = f"{template}#{part}" if alone else template
    response = render(request, name, shared | context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    response.headers["Cache-Control"] = "no-store"
    stamp(response, mark, now=now)
    return response
