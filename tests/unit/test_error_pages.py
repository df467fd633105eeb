"""The pages of errors that no view has answered."""

import pytest
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory, override_settings
from django.urls import path

from reconcile import urls
from reconcile.errors import answer_error


def fails(request: HttpRequest) -> HttpResponse:
    """A view whose database is gone, or that has a fault."""
    if "database" in request.path:
        raise OperationalError("connection refused")
    raise RuntimeError("a fault")


urlpatterns = [path("database/", fails), path("fault/", fails)]
handler500 = answer_error


@pytest.mark.parametrize(
    ("address", "status", "title"),
    [
        ("/database/", 503, "The database can&#x27;t be reached"),
        ("/fault/", 500, "Something broke on our side"),
    ],
)
def test_an_error_has_a_page_that_says_what_happened(address: str, status: int, title: str) -> None:
    with override_settings(ROOT_URLCONF=__name__):
        response = Client(raise_request_exception=False).get(address)

    assert response.status_code == status
    assert title in response.content.decode().replace("can't", "can&#x27;t")
    assert response.headers.get("Retry-After") == ("5" if status == 503 else None)


def test_the_site_answers_with_these_pages() -> None:
    assert urls.handler500 == "reconcile.errors.answer_error"
    assert answer_error(RequestFactory().get("/")).status_code == 500
