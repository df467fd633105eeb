"""Errors of the API as problem documents (RFC 9457)."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse

PROBLEM_TYPE = "application/problem+json"
_TYPE_PREFIX = "urn:reconcile:problem:"


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[dict[str, str]] = (),
    retry_after_s: float | None = None,
    **extra: Any,
) -> HttpResponse:
    """A problem document. `errors` name fields; `retry_after_s` becomes the header, in seconds."""
    document: dict[str, Any] = {
        "type": _TYPE_PREFIX + code,
        "title": code.replace("_", " ").capitalize(),
        "status": status,
        "code": code,
        "detail": detail,
    }
    if errors:
        document["errors"] = list(errors)
        document["field"] = errors[0]["field"]
    document |= extra
    response = JsonResponse(document, status=status, content_type=PROBLEM_TYPE)
    if retry_after_s is not None:
        response["Retry-After"] = str(max(1, round(retry_after_s)))
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="reconcile"'
    return response


def field_problem(field: str, message: str, **extra: Any) -> HttpResponse:
    """422 for one field."""
    return problem(
        422,
        "invalid_input",
        f"{field}: {message}",
        errors=[{"field": field, "message": message}],
        **extra,
    )


def body_problem(status: int, code: str, field: str, message: str) -> HttpResponse:
    """A problem with one part of the request."""
    errors = [{"field": field, "message": message}]
    return problem(status, code, f"{field}: {message}", errors=errors)


def wrong_method(request: HttpRequest, allowed: str) -> HttpResponse:
    """405 with what is taken instead."""
    response = problem(
        405, "method_not_allowed", f"{request.method} is not taken here; use {allowed}."
    )
    response["Allow"] = allowed
    return response
