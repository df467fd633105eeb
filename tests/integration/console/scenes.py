"""Operations for the console to show, made the way they are made in earnest.

Every scene asks for a refund through the services, lets a sandbox misbehave, and so leaves rows
that no test wrote by hand. `ago` is how many seconds in the past it begins.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from django.contrib.auth.models import Group, User
from pytest_django import Settings

from operations.domain.audit import Actor, ActorKind
from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.domain.identity import RefundInput
from operations.models import ApiKey, Operation, Proposal
from operations.sandbox import Sandbox, SandboxControl
from operations.services.closing import approve, close
from operations.services.engine import Engine, default_engine
from operations.services.looking_up import look_up
from operations.services.requesting import Asker, request_refund
from operations.services.sending import InProgress
from operations.services.sweeping import check
from operations.services.weighing import Decision

DANA = Actor(kind=ActorKind.PERSON, id="dana", name="Dana Ruiz", address="10.0.0.7")
PRIYA = Actor(kind=ActorKind.PERSON, id="priya", name="Priya Nair", address="10.0.0.8")
JOB = Actor(kind=ActorKind.JOB, id="check", name="Scheduled check")
PASSWORD = "a long password for tests"


def person(role: str, name: str = "", *, password: str | None = None) -> User:
    """Somebody with one role or ("") with none, who signs in with `password` if it is given."""
    first, _, last = (name or f"{role.capitalize() or 'Nobody'} Tester").partition(" ")
    user = User.objects.create_user(
        username=(name or role or "nobody").split(maxsplit=1)[0].lower(),
        password=password,
        first_name=first,
        last_name=last,
    )
    if role:
        user.groups.add(Group.objects.get_or_create(name=role)[0])
    return user


@dataclass
class Scenes:
    """What can be put on the stage."""

    sandbox: Sandbox
    orders: Iterator[int] = field(default_factory=lambda: count(5_000))
    calls: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def control(self) -> SandboxControl:
        return self.sandbox.control

    def engine(self, ago: float = 0) -> Engine:
        """The configured engine, some seconds in the past, that never waits."""
        clock = _Clock(timedelta(seconds=ago))
        return replace(default_engine(), clock=clock, sleep=clock.sleep)

    def ask(
        self,
        *,
        order: str = "",
        amount: int = 3_800,
        currency: str = "usd",
        captured: int = 0,
        ago: float = 0,
        payment: str = "",
        again: int = 0,
        **more: Any,
    ) -> Operation:
        """One request and, `again`, more tool calls for the same; whatever comes of it."""
        payment = payment or str(
            self.control.payment(amount=captured or 3 * amount, currency=currency)["payment_intent"]
        )
        wish = RefundInput(
            account="",
            order_id=order or str(next(self.orders)),
            reference=more.get("reference", ""),
            amount=amount,
            currency=currency,
            payment=payment,
            reason=more.get("reason", ""),
        )
        engine = self.engine(ago)
        operation = self._request(engine, wish)
        for _ in range(again):
            operation = self._request(engine, wish)
        return operation

    def _request(self, engine: Engine, wish: RefundInput) -> Operation:
        key, _ = ApiKey.objects.get_or_create(
            secret_hash="0" * 64,
            defaults={
                "name": "support-agent",
                "prefix": "rk_test",
                "created_at": datetime.now(UTC),
            },
        )
        asker = Asker(
            actor=Actor(kind=ActorKind.API_KEY, id=str(key.pk), name=key.name),
            api_key=key,
            tool_call_id=f"toolu_{next(self.calls):02}",
            agent_run_id="run_88c1",
        )
        try:
            return request_refund(engine=engine, wish=wish, asker=asker)
        except InProgress as error:
            return Operation.objects.get(pk=error.operation_id)

    def unknown(self, *, made: bool = True, looked: int = 0, **asked: Any) -> Operation:
        """The provider answered 500; with `made`, the refund exists at the provider."""
        self.control.fault("500", when="after" if made else "before")
        operation = self.ask(**asked)
        for number in range(looked):
            engine = self.engine(asked.get("ago", 0) - 600 * (number + 1))
            look_up(engine=engine, operation_id=operation.pk, actor=JOB)
        return fresh(operation)

    def window_closed(self, *, looked: int = 2, **asked: Any) -> Operation:
        """Answers lost until the key could not be relied on any more; nothing was made."""
        self.control.fault("drop", times=6)
        operation = self.ask(ago=26 * 3_600, **asked)
        self.control.clear_faults()
        check(engine=self.engine(), operation_id=operation.pk)
        for number in reversed(range(looked)):
            look_up(engine=self.engine(600 * number), operation_id=operation.pk, actor=JOB)
        return fresh(operation)

    def succeeded(self, **asked: Any) -> Operation:
        return self.ask(**asked)

    def refused(self, **asked: Any) -> Operation:
        self.control.fault("refuse", code="charge_disputed", message="The charge is disputed.")
        return self.ask(**asked)

    def processing(self, **asked: Any) -> Operation:
        self.control.fault("pending")
        return self.ask(**asked)

    def mismatch(self, **asked: Any) -> Operation:
        """A refund that carries our mark and another amount."""
        operation = self.unknown(made=False, **asked)
        self.control.refund_outside(
            operation.payment.charge, amount=1_200, metadata=operation.parameters["metadata"]
        )
        look_up(engine=self.engine(), operation_id=operation.pk, actor=JOB)
        return fresh(operation)

    def conflict(self, **asked: Any) -> Operation:
        """Two people closed it as failed; then the refund was seen."""
        operation = self.unknown(made=True, **asked)
        proposal = self.proposed(operation)
        approve(
            engine=self.engine(),
            proposal_id=proposal.pk,
            revision=fresh(operation).revision,
            note="I agree: the dashboard shows only the capture.",
            actor=PRIYA,
        )
        look_up(engine=self.engine(), operation_id=operation.pk, actor=JOB)
        return fresh(operation)

    def duplicate(self, **asked: Any) -> Operation:
        """Two refunds carry one operation."""
        operation = self.succeeded(**asked)
        self.control.refund_outside(
            operation.payment.charge,
            amount=operation.amount,
            metadata=operation.parameters["metadata"],
        )
        look_up(engine=self.engine(), operation_id=operation.pk, actor=JOB)
        return fresh(operation)

    def proposed(
        self, operation: Operation, *, actor: Actor = DANA, note: str = "Only the capture is there."
    ) -> Proposal:
        """A closing as failed, without a fresh absence, that waits for a second person."""
        proposal = close(
            engine=self.engine(),
            operation_id=operation.pk,
            decision=Decision(
                outcome=ClosingOutcome.FAILED,
                evidence_kind=EvidenceKind.DASHBOARD,
                evidence_reference="case 7731",
                note=note,
                revision=fresh(operation).revision,
            ),
            actor=actor,
        )
        assert proposal is not None
        return proposal


class _Clock:
    """UTC, some time ago; sleeping moves it."""

    def __init__(self, ago: timedelta) -> None:
        self._ago = ago

    def __call__(self) -> datetime:
        return datetime.now(UTC) - self._ago

    def sleep(self, seconds: float) -> None:
        self._ago -= timedelta(seconds=seconds)


@contextmanager
def scenes_on(settings: Settings) -> Iterator[Scenes]:
    """Scenes on a sandbox of their own, and settings that lead to it."""
    with Sandbox() as sandbox:
        settings.RECONCILE = replace(
            settings.RECONCILE, stripe_api_base=sandbox.url, backoff_base_s=0.0
        )
        default_engine.cache_clear()
        yield Scenes(sandbox)
    default_engine.cache_clear()


def fresh(operation: Operation) -> Operation:
    """The row as it stands now."""
    return Operation.objects.select_related("payment", "account").get(pk=operation.pk)
