"""Sessions end: after a time without use, after a time in all, and with the person."""

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse

from operations.console.proving import is_over


class EndSessions:
    """Stands behind Django's own: who comes in a session that is over is nobody any more."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass it on, without the session if that is over."""
        # Without a session nothing is read.
        if (
            settings.SESSION_COOKIE_NAME in request.COOKIES
            and request.user.is_authenticated
            and is_over(request)
        ):
            logout(request)
        return self._get_response(request)
