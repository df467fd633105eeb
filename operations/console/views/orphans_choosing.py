"""Choosing many refunds without an operation, to mark them all as made outside."""

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import in_words
from operations.domain.bulk import MOST_ROWS, BulkAction
from operations.queries.orphans import OrphanView, chosen_orphans
from operations.services.bulk_previewing import BulkRefused, preview
from operations.services.engine import default_engine


@require_POST
@allows(Act.BULK, narrows=True)
def choose(request: ConsoleRequest) -> HttpResponse:
    """Freeze what was ticked, or all of the list, and show what would happen."""
    view, query = request.POST.get("view", ""), request.POST.get("find", "")[:255]
    is_all, engine = bool(request.POST.get("all")), default_engine()
    listed = view if view in (OrphanView.PAYMENTS, OrphanView.ELSEWHERE) else OrphanView.PAYMENTS
    ids = chosen_orphans(
        view=OrphanView(listed),
        query=query.replace("\x00", ""),
        environment=engine.environment,
        accounts=request.accounts,
        only=None if is_all else _numbers(request.POST.getlist("refund")),
        most=MOST_ROWS + 1,
    )
    try:
        run = preview(
            engine=engine,
            action=BulkAction.MARK_OUTSIDE,
            ids=ids,
            actor=actor_of(request),
            selection={"all": is_all, "orphans": str(listed), "find": query},
        )
    except BulkRefused as refusal:
        messages.error(request, in_words(refusal.sentence))
        back = QueryDict(mutable=True)
        back.update({"view": str(listed), "find": query})
        return redirect(f"{reverse('orphans')}?{back.urlencode()}")
    return redirect("bulk-run", run.pk)


def _numbers(texts: list[str]) -> list[int]:
    return [int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) < 19]
