"""Whatever is sent to the API, it answers as its description says, and never with a fault."""

import json

import pytest
from django.test import Client

from operations.domain.audit import Actor, ActorKind
from operations.models import ApiKey, Delivery
from operations.services.engine import default_engine
from operations.services.subscribing import Wanted, subscribe

from .agent import Agent
from .fuzzed import fuzz, operations
from .stage import Stage

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_route_answers_as_it_is_described(served: Stage, agent: Agent) -> None:
    known = things_of(served, agent)
    seen: dict[int, int] = {}
    routes = list(operations())
    for operation in routes:
        counts = fuzz(operation, key=agent.secret, known=known, payment=served.payment())
        print(operation.label, counts)
        for status, count in counts.items():
            seen[status] = seen.get(status, 0) + count

    assert len(routes) == 13
    assert not [status for status in seen if status >= 500], seen
    # Else the cases were all of one kind.
    assert {200, 404, 422} <= set(seen), seen


def things_of(served: Stage, agent: Agent) -> dict[str, str]:
    """One of each thing that an address can name, made by this key."""
    key = ApiKey.objects.get()
    subscription = subscribe(
        engine=default_engine(),
        wanted=Wanted(address="https://93.184.216.34/notices"),
        actor=Actor(kind=ActorKind.API_KEY, id=str(key.pk), name=key.name),
        api_key=key,
    )
    refund = agent.ask(served.payment()).json()
    parts = [{"payment": served.payment(), "amount": 500}]
    group = Client().post(
        "/api/v1/refund-groups",
        json.dumps({"order_id": "4418", "currency": "usd", "refunds": parts}),
        content_type="application/json",
        headers={"Authorization": agent.authorization},
    )
    return {
        "operation_id": refund["operation_id"],
        "group": group.json()["group"],
        "subscription_id": str(subscription.pk),
        "delivery_id": str(Delivery.objects.earliest("pk").pk),
    }
