"""A subscriber: a receiver on a real socket, and what it was told."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

from operations.domain import signing
from operations.domain.notices import NoticePolicy, NoticeType
from operations.models import Account, Delivery, Subscription
from operations.services.engine import Engine
from operations.services.notifying import deliver_due
from operations.services.subscribing import Wanted, subscribe

from .stage import JOB, Stage
from .wire import Behaviour, WireServer, reply, wire_server

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
OK = reply(204)


def telling(stage: Stage, **policy: Any) -> Engine:
    """The stage's engine, which may write to receivers on this machine."""
    given: dict[str, Any] = {"allow_networks": LOOPBACK, "timeout_s": 5.0}
    return replace(stage.engine, notices=NoticePolicy(**given | policy))


@dataclass
class Receiver:
    """What listens, and its subscription."""

    server: WireServer
    subscription: Subscription

    @property
    def told(self) -> list[tuple[str, str]]:
        """Type and operation of every notice that arrived, in order, repeats included."""
        bodies = [json.loads(request.body) for request in self.server.requests]
        return [(body["type"], body["data"]["operation_id"]) for body in bodies]

    @property
    def types(self) -> list[str]:
        return [kind for kind, _ in self.told]

    @property
    def ids(self) -> list[str]:
        return [request.headers["webhook-id"] for request in self.server.requests]

    def deliveries(self) -> list[Delivery]:
        return list(Delivery.objects.filter(subscription=self.subscription).order_by("pk"))

    def state_of_all(self) -> list[str]:
        return [row.state for row in self.deliveries()]

    def signed_with(self, secret: str, place: int = -1) -> bool:
        """Whether the request carries a signature that this secret makes of it."""
        request = self.server.requests[place]
        expected = signing.signature(
            secret,
            message_id=request.headers["webhook-id"],
            timestamp=int(request.headers["webhook-timestamp"]),
            body=request.body,
        )
        return expected in request.headers["webhook-signature"].split(" ")

    def reload(self) -> Subscription:
        self.subscription.refresh_from_db()
        return self.subscription


@contextmanager
def receiver(
    engine: Engine,
    behaviour: Any = None,
    *,
    types: tuple[NoticeType, ...] = (),
    account: Account | None = None,
) -> Iterator[Receiver]:
    """Listen, and subscribe. `behaviour`: what the wire server does, 204 for ever unless given."""

    def choose(server: WireServer) -> Behaviour:
        chosen: Behaviour = behaviour(server) if behaviour else server.answers(OK)
        return chosen

    with wire_server(choose) as server:
        wanted = Wanted(address=server.url + "/hook", types=types, account=account)
        yield Receiver(server, subscribe(engine=engine, wanted=wanted, actor=JOB))


def deliver(engine: Engine) -> int:
    """One run of the relay."""
    return deliver_due(engine=engine)


def unix_now() -> int:
    return int(datetime.now(UTC).timestamp())
