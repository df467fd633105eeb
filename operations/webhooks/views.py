"""The endpoint: verify on the raw bytes, store, acknowledge. What it means is a job's."""

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from operations.jobs import wake_inbox
from operations.services.engine import default_engine
from operations.services.ingesting import EventAccountUnknown, EventRefused, receive_event

log = structlog.get_logger(__name__)

#: The largest body that is read, in bytes.
MAX_BODY = 2**20


@csrf_exempt
@require_POST
def stripe_webhook(request: HttpRequest, account: str = "") -> HttpResponse:
    """2xx once the event is stored; 400 when it is not proven or not an event; 413 when too big."""
    if _declared_length(request) > MAX_BODY:
        return _refused(413, "The body is larger than 1 MiB.")
    try:
        raw = request.body
    except RequestDataTooBig:
        return _refused(413, "The body is larger than 1 MiB.")
    except UnreadablePostError:
        return _refused(400, "The body ended early.")
    try:
        is_new = receive_event(
            engine=default_engine(),
            raw=raw,
            signature=request.headers.get("Stripe-Signature", ""),
            endpoint_account=account,
        )
    except EventRefused as error:
        log.warning("webhook_refused", reason=str(error), account=account)
        return _refused(400, str(error))
    except EventAccountUnknown:
        return _refused(404, "There is no account of this name.")
    except (DatabaseError, InterfaceError):
        log.exception("webhook_not_stored")
        return _refused(503, "The event could not be stored.")
    wake_inbox()
    return JsonResponse({"received": True, "new": is_new})


def _declared_length(request: HttpRequest) -> int:
    text = request.META.get("CONTENT_LENGTH") or "0"
    return int(text) if text.isdigit() else 0


def _refused(status: int, detail: str) -> HttpResponse:
    return JsonResponse(
        {"type": "about:blank", "status": status, "detail": detail},
        status=status,
        content_type="application/problem+json",
    )
