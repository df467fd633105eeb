"""Events that are signed and odd: each is refused at once, or stored and handled."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from operations.models import EventHandling, InboxItem, Operation, WebhookEvent
from operations.services.draining import drain
from operations.services.engine import default_engine

from .agent import Agent
from .deliveries import deliver, event
from .stage import Stage

pytestmark = pytest.mark.django_db(transaction=True)

_NUMBERS = [0, -1, 2**31, 2**63, 10**400, -(2**63) - 1, 0.1, 1e308, float("inf"), float("nan")]
_TEXTS = ["", "\x00", "\ud800", "\U0001f4a9\ud83d", "x" * 300, "../..", "re_1", "succeeded", "usd"]
_ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.sampled_from(_NUMBERS) | st.sampled_from(_TEXTS) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
_PLACES = [
    *(
        ("type",),
        ("created",),
        ("livemode",),
        ("account",),
        ("data",),
        ("request",),
        ("api_version",),
    ),
    *(("data", "object"), ("request", "idempotency_key"), ("data", "previous_attributes")),
    *(("data", "object", name) for name in ("id", "object", "amount", "currency", "status")),
    *(("data", "object", name) for name in ("charge", "payment_intent", "created", "metadata")),
    *(
        ("data", "object", name)
        for name in ("refunds", "amount_refunded", "failure_reason", "reason")
    ),
    ("data", "object", "metadata", "reconcile_operation_id"),
    ("data", "object", "metadata", "reconcile_environment"),
]
_KINDS = ["refund", "charge", "dispute", "payment_intent"]


@settings(
    max_examples=60,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    changes=st.lists(st.tuples(st.sampled_from(_PLACES), _ODD), max_size=4),
    kind=st.sampled_from(_KINDS),
    with_mark=st.booleans(),
)
@example(changes=[(("created",), 10**15)], kind="refund", with_mark=True)
@example(changes=[(("created",), "9999-12-31T23:59:59-23:59")], kind="refund", with_mark=True)
@example(changes=[(("created",), "0001-01-01T00:00:00+23:59")], kind="refund", with_mark=True)
@example(changes=[(("data", "object", "created"), 10**15)], kind="refund", with_mark=True)
@example(changes=[(("data", "object", "amount"), 2**63)], kind="refund", with_mark=True)
@example(changes=[(("data", "object", "status"), "\x00")], kind="refund", with_mark=True)
def test_an_odd_event_is_refused_or_handled(
    served: Stage, agent: Agent, changes: list[Any], kind: str, with_mark: bool
) -> None:
    operation = _operation(served, agent)
    before = Operation.objects.filter(pk=operation.pk).values("status", "amount").get()
    number = WebhookEvent.objects.count()
    body = event(f"evt_{number}", type=f"{kind}.updated")
    body["data"]["object"] |= {"object": kind, "refunds": {"data": [dict(body["data"]["object"])]}}
    if with_mark:
        body["data"]["object"]["metadata"] = {
            "reconcile_operation_id": str(operation.pk),
            "reconcile_environment": operation.environment,
        }
    for place, value in changes:
        _put(body, place, value)

    response = deliver(json.dumps(body).encode())

    assert response.status_code in (200, 400), response.content
    if response.status_code == 200:
        assert WebhookEvent.objects.count() == number + 1
        drain(engine=default_engine())
        failed = InboxItem.objects.filter(failures__gt=0).values_list("error", flat=True)
        assert list(failed) == []
        waits = InboxItem.objects.filter(provider_event_id=f"evt_{number}").exists()
        assert waits or EventHandling.objects.filter(provider_event_id=f"evt_{number}").exists()
    # An event of another refund may raise a flag; it changes no outcome.
    assert Operation.objects.filter(pk=operation.pk).values("status", "amount").get() == before


def _operation(served: Stage, agent: Agent) -> Operation:
    found = Operation.objects.first()
    if found is not None:
        return found
    agent.ask(served.payment())
    return Operation.objects.get()


def _put(body: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    *way, last = place
    for name in way:
        inner = body.get(name)
        if not isinstance(inner, dict):
            return
        body = inner
    body[last] = value
