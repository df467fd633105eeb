"""One call to the API, what it is about, and the reply that goes on the wire."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field

from .answers import Answer, JsonObject
from .faults import Target
from .ledger import Ledger, new_id
from .params import Params
from .sends import OPERATION_FIELD, Send

ROUTES = tuple(
    (method, re.compile(pattern), endpoint)
    for method, pattern, endpoint in (
        ("POST", r"/v1/refunds", "refunds.create"),
        ("GET", r"/v1/refunds", "refunds.list"),
        ("GET", r"/v1/refunds/([^/]+)", "refunds.retrieve"),
        ("POST", r"/v1/refunds/([^/]+)", "refunds.update"),
        ("POST", r"/v1/refunds/([^/]+)/cancel", "refunds.cancel"),
        ("GET", r"/v1/charges/([^/]+)", "charges.retrieve"),
        ("GET", r"/v1/payment_intents/([^/]+)", "payment_intents.retrieve"),
        ("GET", r"/v1/events", "events.list"),
        ("GET", r"/v1/events/([^/]+)", "events.retrieve"),
    )
)


class Wire(enum.Enum):
    """What happens to the reply on the wire."""

    SENT = "sent"
    TRUNCATED = "truncated"
    CLOSED = "closed"
    RESET = "reset"


@dataclass(frozen=True)
class Reply:
    """An answer and its way; no answer is needed for a connection that is closed."""

    answer: Answer | None
    wire: Wire = Wire.SENT


@dataclass
class Call:
    """A request under /v1. `outcome` is filled in as it passes through."""

    method: str
    path: str
    params: Params
    headers: dict[str, str]
    request_id: str = field(default_factory=lambda: new_id("req"))
    endpoint: str | None = None
    object_id: str = ""
    target: Target = field(default_factory=Target)
    outcome: str = "refused"
    faults: list[str] = field(default_factory=list)
    code: str | None = None
    refund: str | None = None

    @property
    def account(self) -> str:
        """The connected account, or `""` for the platform itself."""
        return self.headers.get("stripe-account", "")

    @property
    def api_key(self) -> str:
        """What stands in the Authorization header, without `Bearer`."""
        return self.headers.get("authorization", "").removeprefix("Bearer ").strip()

    @property
    def key(self) -> str | None:
        """The idempotency key; an empty one counts as none."""
        return self.headers.get("idempotency-key") or None

    def route(self, ledger: Ledger) -> None:
        """Find the endpoint, and what the call is about, for the faults and the log."""
        for method, pattern, endpoint in ROUTES:
            found = pattern.fullmatch(self.path) if method == self.method else None
            if found is not None:
                self.endpoint = endpoint
                self.object_id = found.group(1) if found.groups() else ""
                break
        self.target = self._target(ledger)

    def summary(self) -> JsonObject:
        """For the list of calls that are being held."""
        return {
            "id": self.request_id,
            "endpoint": self.endpoint,
            "key": self.key,
            "params": self.params.flat(),
            "payments": list(self.target.payments),
            "operation": self.target.operation,
            "fault": self.faults[-1] if self.faults else None,
        }

    def send(self, now: float, logged_headers: tuple[str, ...]) -> Send:
        """This call as an entry in the log of sends; `now` in UTC seconds."""
        return Send(
            request_id=self.request_id,
            time=now,
            account=self.account,
            key=self.key,
            payment=self.target.payments[0] if self.target.payments else None,
            operation=self.target.operation,
            params=self.params.flat(),
            headers={name: self.headers[name] for name in logged_headers if name in self.headers},
        )

    def _target(self, ledger: Ledger) -> Target:
        fields, operation = self.params.fields, self.params.metadata.get(OPERATION_FIELD)
        payment = fields.get("charge") or fields.get("payment_intent")
        if self.endpoint in ("charges.retrieve", "payment_intents.retrieve"):
            payment = self.object_id
        elif self.object_id in ledger.refunds:
            refund = ledger.refunds[self.object_id]
            payment = refund.charge
            operation = refund.metadata.get(OPERATION_FIELD)
        return Target(ledger.known_payments(payment), operation, self.key)
