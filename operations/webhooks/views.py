"""The endpoint where Django serves it: `runserver`, plain WSGI servers, tests.

In production `receiver` takes the same addresses before Django sees them.
"""

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from operations.jobs import wake_inbox
from operations.services.engine import default_engine
from operations.services.ingesting import EventAccountUnknown, EventRefused, receive_event
from operations.webhooks import answers
from operations.webhooks.answers import Answer

log = structlog.get_logger(__name__)


@csrf_exempt
@require_POST
def stripe_webhook(request: HttpRequest, account: str = "") -> HttpResponse:
    """2xx once the event is stored; 400 when it is not proven or not an event; 413 when too big."""
    answer = _received(request, account)
    response = HttpResponse(answer.body, status=answer.status, content_type=answer.content_type)
    if answer.retry_after_s is not None:
        response["Retry-After"] = str(answer.retry_after_s)
    return response


def _received(request: HttpRequest, account: str) -> Answer:
    if _declared_length(request) > answers.MAX_BODY:
        return answers.TOO_LARGE
    try:
        raw = request.body
    except RequestDataTooBig:
        return answers.TOO_LARGE
    except UnreadablePostError:
        return answers.CUT_OFF
    try:
        is_new = receive_event(
            engine=default_engine(),
            raw=raw,
            signature=request.headers.get("Stripe-Signature", ""),
            endpoint_account=account,
        )
    except EventRefused as error:
        log.warning("webhook_refused", reason=str(error), account=account)
        return answers.refused(str(error))
    except EventAccountUnknown:
        return answers.NO_ACCOUNT
    except (DatabaseError, InterfaceError):
        log.exception("webhook_not_stored")
        return answers.NOT_STORED
    wake_inbox()
    return answers.STORED if is_new else answers.STORED_BEFORE


def _declared_length(request: HttpRequest) -> int:
    text = request.META.get("CONTENT_LENGTH") or "0"
    return int(text) if text.isdigit() else 0
