"""A running sandbox, the real SDK pointed at it, and something that receives its webhooks."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest
import stripe

from operations.sandbox import Sandbox, SandboxControl

SECRET = "whsec_of_the_tests"


def wait_until(happened: Callable[[], bool], timeout_s: float = 5.0) -> None:
    """Wait for something that has no event to wait on; fails when it takes too long."""
    over = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < over, "it did not happen in time"
        time.sleep(0.005)


def headers_of(result: stripe.Refund | stripe.StripeError) -> Mapping[str, str]:
    """The headers of the answer that the SDK made this of."""
    if isinstance(result, stripe.StripeError):
        return result.headers or {}
    assert result.last_response is not None
    return result.last_response.headers


def is_replay(result: stripe.Refund | stripe.StripeError) -> bool:
    """Whether Stripe's answer was the saved one."""
    return headers_of(result).get("Idempotent-Replayed") == "true"


@dataclass
class Receiver:
    """An endpoint that keeps what it gets; `answers` are given first, then 200."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    def events(self) -> list[stripe.Event]:
        """All deliveries, verified by Stripe's own SDK."""
        return [
            stripe.Webhook.construct_event(body, headers["Stripe-Signature"], SECRET)
            for headers, body in self.received
        ]

    def types(self) -> list[str]:
        """The types of the deliveries in the order of their arrival."""
        return [event.type for event in self.events()]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.received.append((dict(self.headers.items()), body))
            self.send_response(kept.answers.pop(0) if kept.answers else 200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept.url = f"http://127.0.0.1:{server.server_address[1]}/webhooks/stripe/"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield kept
        server.shutdown()


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(webhook_secret=SECRET, webhook_base_delay_s=0.02) as running:
        yield running


@pytest.fixture
def control(sandbox: Sandbox) -> SandboxControl:
    return sandbox.control


@pytest.fixture
def connect() -> Callable[..., stripe.StripeClient]:
    """Makes a client of the real SDK without retries; `account` is a connected one."""

    def make(sandbox: Sandbox, **options: str) -> stripe.StripeClient:
        return stripe.StripeClient(
            options.pop("api_key", "sk_test_of_the_tests"),
            max_network_retries=0,
            base_addresses={"api": sandbox.url},
            http_client=stripe.RequestsClient(timeout=5),
            **options,  # type: ignore[arg-type]
        )

    return make


@pytest.fixture
def client(sandbox: Sandbox, connect: Callable[..., stripe.StripeClient]) -> stripe.StripeClient:
    return connect(sandbox)


@pytest.fixture
def payment(control: SandboxControl) -> dict[str, str]:
    """A captured card payment of 100.00 dollars: `charge` and `payment_intent`."""
    return control.payment(amount=10_000, currency="usd")
