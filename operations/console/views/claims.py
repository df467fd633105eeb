"""Claiming an operation, giving it back, taking it over, and saying that its page is open."""

from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import in_words
from operations.console.views.operation import context_of, dossier_or_404
from operations.console.working import work_context
from operations.services import claiming
from operations.services.claiming import ClaimHeld, TakeoverRefused
from operations.services.engine import default_engine
from operations.services.settling import OperationNotFound


@require_POST
@allows(Act.DECIDE)
def claim(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """Leave it to this person for a while."""
    try:
        claiming.claim(engine=default_engine(), operation_id=operation_id, actor=actor_of(request))
    except OperationNotFound:
        raise Http404 from None
    except ClaimHeld as held:
        return _refused(request, operation_id, held)
    return _back(request, operation_id)


@require_POST
@allows(Act.DECIDE)
def release(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """Give it back. What is not this person's any more stays as it is."""
    try:
        claiming.release(
            engine=default_engine(), operation_id=operation_id, actor=actor_of(request)
        )
    except OperationNotFound:
        raise Http404 from None
    return _back(request, operation_id)


@require_POST
@allows(Act.DECIDE)
def take_over(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """Take it from who works on it, with a reason."""
    try:
        claiming.take_over(
            engine=default_engine(),
            operation_id=operation_id,
            held_by=request.POST.get("held_by", ""),
            reason=request.POST.get("reason", "").replace("\x00", ""),
            actor=actor_of(request),
        )
    except OperationNotFound:
        raise Http404 from None
    except (ClaimHeld, TakeoverRefused) as refusal:
        return _refused(request, operation_id, refusal)
    return _back(request, operation_id)


@require_POST
@allows(Act.READ)
def heartbeat(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """The page of this operation is open; answers who else is there."""
    claiming.stay(engine=default_engine(), operation_id=operation_id, actor=actor_of(request))
    if not request.htmx:
        return redirect("operation", operation_id)
    context = work_context(request, operation_id) | {"beats": True}
    return answer(request, "operations/_claim.html", context, part="presence")


def _refused(
    request: ConsoleRequest, operation_id: UUID, refusal: ClaimHeld | TakeoverRefused
) -> HttpResponse:
    context = context_of(request, dossier_or_404(operation_id)) | {
        "refused": [in_words(refusal.sentence)]
    }
    return answer(request, "operations/operation.html", context, status=409)


def _back(request: ConsoleRequest, operation_id: UUID) -> HttpResponse:
    """To the page where the button stood: the operation's own, or its decision page."""
    return redirect("close" if request.POST.get("then") == "close" else "operation", operation_id)
