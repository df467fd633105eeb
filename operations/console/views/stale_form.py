"""The answer to a form whose token is not the session's: it changes nothing and loses nothing."""

from typing import cast
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.http import url_has_allowed_host_and_scheme

from operations.console.keeping import page_of, signed_copy, take_in
from operations.console.permissions import ConsoleRequest, sign_in_first


def stale_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403, with what was typed waiting on the form's page; a sign-in before it when that is due.

    Only what a page of ours sent is kept: another site could have written anything into its form.
    """
    page = page_of(request) if _is_ours(request) else ""
    if page and not request.user.is_authenticated:
        return sign_in_first(request, page, status=403)
    if page:
        page = take_in(request, signed_copy(request))
    context = {"page": page, "again": "" if page else _page_before(request)}
    part = "#expired" if getattr(cast("ConsoleRequest", request), "htmx", False) else ""
    return render(request, f"403_csrf.html{part}", context, status=403)


def _is_ours(request: HttpRequest) -> bool:
    """Whether the browser says that a page of this host sent it."""
    origin = request.headers.get("Origin") or request.headers.get("Referer", "")
    where = urlsplit(origin) if origin.isprintable() else None
    return where is not None and (where.scheme, where.netloc) == (
        request.scheme,
        request.get_host(),
    )


def _page_before(request: HttpRequest) -> str:
    """The page that the form was on, to open again; "" when nobody says."""
    referer = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(
        referer, {request.get_host()}, require_https=request.is_secure()
    ):
        return ""
    where = urlsplit(referer)
    try:
        resolve(where.path, settings.ROOT_URLCONF)
    except Resolver404:
        return ""
    return where._replace(scheme="", netloc="", fragment="").geturl()
