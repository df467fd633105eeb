"""What every route needs of a request: a body that is declared as JSON, and who calls."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from operations.api.problems import body_problem
from operations.domain.audit import Actor, ActorKind
from operations.models import ApiKey

#: The largest body that is read, in bytes.
_MAX_BODY = 64 * 1024


def json_only(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Refuse a body that is not declared as JSON, or is too large, before it is read."""

    @wraps(view)
    def check(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isdecimal() and int(length) > _MAX_BODY:
            message = f"must not be larger than {_MAX_BODY} bytes"
            return body_problem(413, "body_too_large", "body", message)
        if request.content_type != "application/json":
            return body_problem(
                415, "unsupported_media_type", "Content-Type", "must be application/json"
            )
        return view(request, **arguments)

    return check


def key_of(request: HttpRequest) -> ApiKey:
    """The key that was found valid."""
    key: ApiKey = request.auth  # type: ignore[attr-defined]
    return key


def caller(request: HttpRequest) -> Actor:
    """Who calls, as the audit trail names them."""
    key = key_of(request)
    return Actor(
        kind=ActorKind.API_KEY,
        id=str(key.pk),
        name=key.name,
        address=str(request.META.get("REMOTE_ADDR", ""))[:64],
    )
