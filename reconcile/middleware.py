"""What every request passes before a view sees it."""

from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

#: The largest form, in bytes: its longest texts, each character of them escaped.
MOST_FORM = 2**18

#: What a page may ask the browser for: passkeys, and nothing else. A name that the browser does not
#: know is a complaint in its console, on each page.
_FEATURES = {
    **dict.fromkeys(
        (
            *("accelerometer", "autoplay", "browsing-topics", "camera"),
            *("display-capture", "encrypted-media", "fullscreen", "gamepad", "geolocation"),
            *("gyroscope", "hid", "idle-detection", "local-fonts", "magnetometer", "microphone"),
            *("midi", "payment", "picture-in-picture", "screen-wake-lock", "serial"),
            *("sync-xhr", "usb", "xr-spatial-tracking"),
        ),
        "()",
    ),
    "publickey-credentials-create": "(self)",
    "publickey-credentials-get": "(self)",
}
PERMISSIONS_POLICY = ", ".join(f"{name}={who}" for name, who in _FEATURES.items())


class HardenAnswers:
    """Headers that Django has no setting for. What says nothing of caching is kept by nobody."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer with them."""
        response = self._get_response(request)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        response.headers.setdefault("Cache-Control", "no-store")
        return response


class LimitForms:
    """Answers a form that is larger than any of ours with 413 before a byte of it is parsed.

    Reports have a limit of their own. What sends no form (the API, webhooks) is not looked at.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass it on, or say that it is too large."""
        length = request.META.get("CONTENT_LENGTH") or "0"
        is_form = request.content_type in (
            "application/x-www-form-urlencoded",
            "multipart/form-data",
        )
        # A length that is no number is a server's that passes on what it should not.
        too_large = not length.isdecimal() or len(length) > 18 or int(length) > MOST_FORM
        if is_form and too_large and request.path != reverse("report-upload"):
            response = render(request, "413.html", status=413)
            # The rest of a body that was not read would be taken for the next request.
            response.headers["Connection"] = "close"
            return response
        return self._get_response(request)


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
