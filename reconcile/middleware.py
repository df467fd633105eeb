"""What every request passes before a view sees it."""

from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse


class RefuseNulInAdmin:
    """PostgreSQL holds no NUL, and Django's admin asks it for whatever a filter says: that is 400.

    The product's own pages and the API answer such input themselves.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass it on, unless it can only fail."""
        if request.path.startswith("/admin/"):
            values = [
                *request.GET.keys(),
                *(text for _, texts in request.GET.lists() for text in texts),
            ]
            if any("\x00" in text for text in values):
                raise BadRequest("The address holds a NUL character.")
        return self._get_response(request)
