"""Whether what a page shows has changed since the browser asked last, said by a few cheap facts."""

from datetime import datetime
from hashlib import blake2b

from django.http import HttpResponse
from django.utils.translation import get_language

from operations.console import wording
from operations.console.permissions import ConsoleRequest


def mark_of(request: ConsoleRequest, *facts: object, now: datetime) -> str:
    """The ETag of what this person is shown now.

    `facts`: what is shown (an id, the
    query), then revisions, counts, newest ids.

    The minute belongs to it, so that what is told as an age is never more than that behind.
    """
    seen = (
        request.user.pk,
        sorted(request.acts),
        sorted(request.accounts or ()),
        get_language(),
        f"{now:%Y%m%d%H%M}",
        *facts,
    )
    digest = blake2b(repr(seen).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return f'W/"{digest}"'


def unchanged(request: ConsoleRequest, mark: str, *, now: datetime) -> HttpResponse | None:
    """304 when the browser has this already, else nothing."""
    if not request.htmx or request.headers.get("If-None-Match", "") != mark:
        return None
    response = HttpResponse(status=304)
    del response.headers["Content-Type"]
    stamp(response, mark, now=now)
    return response


def stamp(response: HttpResponse, mark: str, *, now: datetime) -> None:
    """Say what is shown, and the time by the server's clock, exact and in words."""
    if mark:
        response.headers["ETag"] = mark
    response.headers["X-Now"] = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    response.headers["X-As-Of"] = wording.clock(now, now)
