"""The stage under another contract: sandbox and account keep to the same one."""

import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from operations.domain.contract import Contract
from operations.domain.statuses import Status, UnknownReason
from operations.models import Account, Operation
from operations.providers.contracts import SPOKEN_TO_LIKE_STRIPE
from operations.providers.stripe import StripeProvider
from operations.sandbox import Sandbox
from operations.services.draining import handle_next_event
from operations.services.engine import Engine
from operations.services.ingesting import receive_event
from operations.services.looking_up import LookupResult, look_up
from operations.services.sweeping import check, claim_due_checks, give_up_lost_sends

from .stage import API_KEY, JOB, SECRET, MovingClock, Stage, engine_for


@dataclass
class ContractStage(Stage):
    """A stage whose provider keeps to `contract`."""

    contract: Contract = SPOKEN_TO_LIKE_STRIPE["stripe"]

    @property
    def resends(self) -> bool:
        """Whether a send whose answer was lost may be repeated under this contract."""
        return self.contract.replay_is_safe

    @property
    def lists_show_it(self) -> bool:
        """Whether a look-up finds a refund that was made."""
        return self.contract.lookup_conclusive_after_s is not None

    @property
    def made(self) -> Status:
        """What an operation is once its refund is known to have been made."""
        return Status.PROCESSING if self.contract.pending_statuses else Status.SUCCEEDED

    def in_real_time(self) -> Engine:
        """The engine with time that really passes and reads that nobody holds back.

        For many at once: a moving clock would let all of them move it for each other.
        """
        contract = replace(self.contract, reads_per_s=None)
        provider = StripeProvider(
            api_key=API_KEY,
            api_base=self.sandbox.url,
            connect_timeout_s=5.0,
            read_timeout_s=30.0,
            contract=contract,
        )
        return replace(
            self.engine,
            clock=lambda: datetime.now(UTC),
            sleep=time.sleep,
            lease_s=60.0,
            open_provider=lambda account: provider,
        )

    def look(self, operation: Operation) -> tuple[LookupResult, Status]:
        """Look it up; what was found, and how the operation stands then."""
        result = look_up(engine=self.engine, operation_id=operation.pk, actor=JOB)
        operation.refresh_from_db()
        return result, Status(operation.status)

    def sweep(self, seconds: float) -> None:
        """What the periodic jobs do after this time."""
        self.clock.advance(seconds)
        give_up_lost_sends(engine=self.engine)
        for due in claim_due_checks(engine=self.engine):
            check(engine=self.engine, operation_id=due)

    def finish_by_webhook(self, payment: str) -> None:
        """Let the provider finish what it only received, and tell it by signed webhooks."""
        with inbox() as received:
            self.control.webhook_url(received.url)
            self.control.finish_refunds(payment=payment)
            received.wait_for("refund.updated")
        now = self.in_real_time()
        for body, signature in received.deliveries:
            receive_event(engine=now, raw=body, signature=signature, endpoint_account="")
        while handle_next_event(engine=self.engine):
            pass

    def assert_waits_for_a_person(self, reason: UnknownReason) -> Operation:
        """Unknown for this reason, in the queue, with a look-up planned; asking sends nothing."""
        operation = Operation.objects.get()
        assert (operation.status, operation.unknown_reason) == (Status.UNKNOWN, reason)
        assert operation.needs_person_since is not None
        assert operation.next_check_at is not None
        payment = operation.payment.charge
        sends = self.sends(payment)
        for _ in range(5):
            assert self.ask(payment).status == Status.UNKNOWN
        assert self.sends(payment) == sends
        return operation


@contextmanager
def stage_under(name: str) -> Iterator[ContractStage]:
    """A fresh provider and an engine for it, both under the contract of this name."""
    with Sandbox(webhook_secret=SECRET, webhook_base_delay_s=0.02, contract=name) as sandbox:
        clock = MovingClock()
        Account.objects.create(name="default", provider=name, livemode=False)
        yield ContractStage(
            sandbox=sandbox,
            clock=clock,
            engine=engine_for(sandbox.url, clock),
            contract=SPOKEN_TO_LIKE_STRIPE[name],
        )


@dataclass
class Inbox:
    """What a webhook endpoint was sent: raw bodies and their signatures."""

    url: str = ""
    deliveries: list[tuple[bytes, str]] = field(default_factory=list)

    def wait_for(self, event_type: str, timeout_s: float = 10) -> None:
        """Wait for an event of this type."""
        over = time.monotonic() + timeout_s
        while not any(f'"{event_type}"'.encode() in body for body, _ in self.deliveries):
            assert time.monotonic() < over, f"no {event_type} came"
            time.sleep(0.01)


@contextmanager
def inbox() -> Iterator[Inbox]:
    """A webhook endpoint that says 200 and keeps what it was sent."""
    kept = Inbox()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.deliveries.append((body, self.headers["Stripe-Signature"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept.url = f"http://127.0.0.1:{server.server_address[1]}/"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield kept
        server.shutdown()
