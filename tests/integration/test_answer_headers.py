"""What every answer tells the browser, page by page."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from reconcile.middleware import MOST_FORM

ROOT = Path(__file__).parents[2]
SOURCES = {
    **dict.fromkeys(["default-src", "frame-ancestors", "base-uri"], "'none'"),
    **dict.fromkeys(
        ["script-src", "style-src", "font-src", "connect-src", "form-action"], "'self'"
    ),
    "img-src": "'self' data:",
}

FORM = "application/x-www-form-urlencoded"


def check(headers: Any, path: str) -> None:
    policy = dict(
        part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";")
    )
    assert policy == SOURCES, path
    assert headers["X-Frame-Options"] == "DENY", path
    assert headers["X-Content-Type-Options"] == "nosniff", path
    assert headers["Referrer-Policy"] == "same-origin", path
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin", path
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin", path
    assert "camera=()" in headers["Permissions-Policy"], path
    assert "no-store" in headers["Cache-Control"], path


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/login/", 302),
        ("/proposals/", 200),
        ("/money/", 200),
        ("/nothing/here/", 404),
        ("/admin/", 200),
        ("/api/v1/openapi.json", 200),
        ("/api/v1/docs", 200),
        ("/api/v1/refunds/none", 401),
        ("/api/v1/nothing", 404),
        ("/metrics", 200),
        ("/healthz", 200),
        ("/readyz", 200),
    ],
)
def test_a_page_of_each_kind_carries_them(path: str, status: int) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    response = client.get(path)
    assert response.status_code == status
    check(response.headers, path)


@pytest.mark.django_db
def test_refusals_carry_them() -> None:
    client = Client(enforce_csrf_checks=True)
    check(client.get("/login/").headers, "signing in")
    check(client.post("/login/", {}).headers, "a file of a stranger")
    check(client.post("/login/", "", FORM).headers, "a stale form")
    check(client.get("/", {"q": "x"}).headers, "a redirect")
    too_large = client.post("/login/", "x" * (MOST_FORM + 1), FORM)
    assert too_large.status_code == 413
    check(too_large.headers, "a large form")
    check(Client().get("/", headers={"Host": "elsewhere.example"}).headers, "another host")


@pytest.mark.django_db
def test_a_form_that_is_too_large_is_answered_with_a_page_and_changes_nothing() -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    for kind in (FORM, "multipart/form-data; boundary=x"):
        response = client.post(reverse("settings"), "x" * (MOST_FORM + 1), content_type=kind)
        assert response.status_code == 413
        assert "This is too large" in response.content.decode()
    assert client.post(reverse("settings"), {"theme": "x" * (MOST_FORM - 200)}).status_code != 413


@pytest.mark.django_db
def test_static_files_are_for_this_site_only() -> None:
    response = Client().get("/static/console.css")
    response.close()
    headers = response.headers
    assert "Access-Control-Allow-Origin" not in headers
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_in_production_cookies_belong_to_this_host_and_pages_come_over_https_only() -> None:
    kept = {name: value for name, value in os.environ.items() if name != "RECONCILE_INSECURE_LOCAL"}
    env = kept | {"DJANGO_DEBUG": "0", "DJANGO_SECRET_KEY": "k" * 60}
    done = subprocess.run(
        [sys.executable, "-c", _PRODUCTION], cwd=ROOT, env=env, capture_output=True, check=True
    )
    said = json.loads(done.stdout)
    assert said["cookies"] == {"__Host-sessionid": True, "__Host-csrftoken": True}
    assert said["domains"] == [None, None]
    assert said["paths"] == ["/", "/"]
    assert said["hsts"] == "max-age=31536000"
    assert said["plain"] == [301, "https://localhost/"]


_PRODUCTION = """
import json
import django
django.setup()
from django.conf import settings as s
from django.test import Client
client = Client(headers={"host": "localhost"})
plain = client.get("/")
print(json.dumps({
    "cookies": {
        s.SESSION_COOKIE_NAME: s.SESSION_COOKIE_SECURE,
        s.CSRF_COOKIE_NAME: s.CSRF_COOKIE_SECURE,
    },
    "domains": [s.SESSION_COOKIE_DOMAIN, s.CSRF_COOKIE_DOMAIN],
    "paths": [s.SESSION_COOKIE_PATH, s.CSRF_COOKIE_PATH],
    "hsts": client.get("/healthz", secure=True).headers["Strict-Transport-Security"],
    "plain": [plain.status_code, plain["Location"]],
}))
"""
