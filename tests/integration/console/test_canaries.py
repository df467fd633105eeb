"""Secrets and people's data that are planted everywhere turn up nowhere."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse

from operations.domain.audit import Actor, ActorKind
from operations.models import WebhookEvent
from operations.queries.dossier import read_dossier
from operations.queries.timeline import timeline
from operations.services.bundling import bundle_of
from operations.services.draining import drain
from operations.services.engine import default_engine
from operations.services.keys import create_api_key
from tests.integration.deliveries import deliver, event
from tests.integration.inboxes import handled
from tests.integration.stage import SECRET
from tests.integration.test_bundles import files_of

from .scenes import Scenes

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]
API_KEY = "sk_live_Canary51HxQ"
CANARIES = {
    "api key": API_KEY,
    "webhook secret": "whsec_CanaryAbC123",
    "bearer": "CanaryBearer0123456",
    "card": "4242424242424242",
    "card with spaces": "5555 5555 5555 4444",
    "password": "canary-pass-word",
    "email": "jane.canary@people.example",
    "name": "Jane Canarysdottir",
    "receipt": "https://pay.example/receipts/canary",
    "fingerprint": "FpCanary99",
}
SAID = (
    f"{API_KEY}, {CANARIES['webhook secret']}, Bearer {CANARIES['bearer']},"
    f" {CANARIES['card']}, {CANARIES['card with spaces']}"
)


def planted(operation_id: str) -> dict[str, Any]:
    """An event about this operation with everything in it that must not be kept."""
    found = event("evt_canary")
    found["data"]["object"] |= {
        "metadata": {
            "reconcile_operation_id": operation_id,
            "password": CANARIES["password"],
            "customer_email": CANARIES["email"],
            "note": f"{API_KEY} {CANARIES['webhook secret']}",
        },
        "billing_details": {"name": CANARIES["name"], "email": CANARIES["email"]},
        "receipt_url": CANARIES["receipt"],
        "payment_method_details": {"card": {"fingerprint": CANARIES["fingerprint"]}},
    }
    return found


def told(text: str) -> list[str]:
    return [name for name, canary in CANARIES.items() if canary in text]


def test_no_canary_is_shown_stored_logged_or_given_away(
    scenes: Scenes, signed_in: SignIn, settings: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    settings.RECONCILE = replace(settings.RECONCILE, stripe_webhook_secrets=(SECRET,))
    default_engine.cache_clear()
    operation = scenes.unknown()
    client = signed_in("operator")
    assert deliver(planted(str(operation.pk))).status_code == 200
    while drain(engine=default_engine()) is not None:
        pass
    handled("evt_canary")
    wrong = deliver(planted("x"), header=f"t=1,v1={CANARIES['password']}")
    assert wrong.status_code == 400
    noted = client.post(
        reverse("add-note", args=[operation.pk]), {"text": SAID, "form_token": str(uuid4())}
    )
    assert noted.status_code in (200, 302)

    shown = {
        name: client.get(reverse(name, args=arguments)).content.decode()
        for name, arguments in (
            ("operation", [operation.pk]),
            ("operation-audit", [operation.pk]),
            ("queue", []),
            ("orphans", []),
            ("inbox", []),
        )
    }
    dossier = read_dossier(operation.pk)
    assert dossier is not None
    assert len(dossier.notes) == 1
    for row in timeline(dossier):
        address = reverse("event-raw", args=[operation.pk, row.anchor])
        shown[row.anchor] = client.get(address).content.decode()
    actor = Actor(kind=ActorKind.JOB, id="test", name="Test")
    bundle = bundle_of(engine=default_engine(), operation_id=operation.pk, actor=actor)
    shown |= {name: content.decode() for name, content in files_of(bundle.content).items()}
    shown["refused key"] = _with_key("rck_" + CANARIES["bearer"])
    shown["invalid body"] = _with_key(
        create_api_key(engine=default_engine(), name="x", actor=actor)[1]
    )
    out, err = capfd.readouterr()
    shown["log"] = out + err

    assert {name: told(text) for name, text in shown.items() if told(text)} == {}
    assert _stored() == {}


def _with_key(key: str) -> str:
    answer = Client().post(
        "/api/v1/refunds",
        json.dumps({"amount": SAID, "password": CANARIES["password"]}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.status_code in (401, 422)
    return answer.content.decode()


def _stored() -> dict[str, list[str]]:
    """The tables that hold one, raw bytes included."""
    found: dict[str, list[str]] = {}
    for model in apps.get_app_config("operations").get_models():
        text = " ".join(str(row) for row in model._default_manager.values_list())
        if model is WebhookEvent:
            text += b"".join(
                bytes(raw) for raw in WebhookEvent.objects.values_list("raw", flat=True)
            ).decode()
        if told(text):
            found[model.__name__] = told(text)
    return found
