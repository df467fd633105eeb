"""The page of an error that no view has answered."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.views.defaults import server_error

#: Seconds after which a browser or a proxy may ask again.
RETRY_AFTER_S = 5


def answer_error(request: HttpRequest) -> HttpResponse:
    """503 while the database can't be reached, 500 for everything else. Reads nothing itself."""
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        page = loader.get_template("503.html").render()
        return HttpResponse(page, status=503, headers={"Retry-After": str(RETRY_AFTER_S)})
    return server_error(request)
