"""A form of another site changes nothing, wherever it is sent."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import resolve

from .routes import routes

pytestmark = pytest.mark.django_db

#: What takes a POST without a form's token: each proves otherwise who sends it.
SIGNED = {"stripe-webhook", "stripe-webhook-account"}
BEARER = "api-v1:"


def test_every_route_refuses_a_post_without_the_token_of_a_form() -> None:
    user = User.objects.create_superuser("root", password="a long password for tests")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    found = list(routes())
    let_through = set()
    for name, path, _ in found:
        response = client.post(path, {"note": "from another site"})
        if "403_csrf.html" not in [template.name for template in response.templates]:
            let_through.add(name)

    assert {name for name in let_through if not name.startswith(BEARER)} == SIGNED
    assert len(found) > 80, "the walk missed most of them"


def test_the_walk_reaches_the_views_that_it_names() -> None:
    for name, path, view in routes():
        assert resolve(path).func == view or name.startswith(("admin:", BEARER)), path


@pytest.mark.parametrize("path", ["/api/v1/refunds", "/api/v1/refund-groups"])
def test_a_session_is_no_key(path: str) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    response = client.post(path, {"order_id": "1"}, content_type="application/json")
    assert response.status_code == 401


def test_a_webhook_without_a_signature_is_refused_whoever_is_signed_in() -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    for path in ("/webhooks/stripe/", "/webhooks/stripe/main/"):
        response = client.post(path, {"id": "evt_1"}, content_type="application/json")
        assert response.status_code == 400
