"""A caller of the API."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.test import Client

from .stage import PART

REFUNDS = "/api/v1/refunds"


def body(payment: str, /, **changes: Any) -> dict[str, Any]:
    """A request for a part of the payment; a field that is changed to `...` is left out."""
    given = {"order_id": "4417", "amount": PART, "currency": "usd", "payment": payment} | changes
    return {name: value for name, value in given.items() if value is not ...}


@dataclass(frozen=True)
class Agent:
    """Calls the API in this process, or over HTTP when it is given an address."""

    secret: str

    @property
    def authorization(self) -> str:
        return f"Bearer {self.secret}"

    def ask(self, payment: str, /, **changes: Any) -> Any:
        """Ask for a refund in this process."""
        return self.post(json.dumps(body(payment, **changes)))

    def post(
        self,
        data: str | bytes,
        *,
        content_type: str = "application/json",
        authorization: str | None = None,
        **headers: str,
    ) -> Any:
        """Post anything at all."""
        return Client().post(
            REFUNDS,
            data,
            content_type=content_type,
            headers={
                "Authorization": self.authorization if authorization is None else authorization,
                **headers,
            },
        )

    def get(self, path: str) -> Any:
        """Read something."""
        return Client().get(path, headers={"Authorization": self.authorization})

    def ask_over_http(self, address: str, payment: str, /, **changes: Any) -> "HttpAnswer":
        """Ask for a refund over a connection of its own."""
        where = urlsplit(address)
        connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
        try:
            connection.request(
                "POST",
                REFUNDS,
                json.dumps(body(payment, **changes)),
                {"Authorization": self.authorization, "Content-Type": "application/json"},
            )
            answer = connection.getresponse()
            return HttpAnswer(answer.status, dict(answer.getheaders()), json.load(answer))
        finally:
            connection.close()


@dataclass(frozen=True)
class HttpAnswer:
    """An answer that came over HTTP."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]
