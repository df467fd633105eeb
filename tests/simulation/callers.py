"""Callers: agents that ask for a refund, ask again, and change their mind."""

from dataclasses import dataclass, field, replace

from operations.domain.audit import Actor, ActorKind
from operations.domain.identity import RefundInput
from operations.models import Operation
from operations.queries.answers import answer
from operations.services.requesting import (
    Asker,
    ConflictingOperation,
    InputRefused,
    PaymentUnreadable,
    ReusedWithOtherInput,
    request_group,
    request_refund,
)
from operations.services.sending import InProgress
from tests.simulation.world import SimulationFailed, World

#: How somebody asks again; the first two are the most usual.
_AGAIN = ("resumed", "again", "resumed", "again", "resumed", "amount", "payment", "token")
_AGENT = Actor(kind=ActorKind.API_KEY, id="1", name="Agent")
REFUSALS = (InProgress, ConflictingOperation, ReusedWithOtherInput, InputRefused, PaymentUnreadable)


@dataclass(frozen=True)
class Ask:
    """One tool call, complete: the same one can be made again by a resumed agent."""

    wish: RefundInput
    token: str
    tool_call: str


@dataclass
class Callers:
    """All agents of a world, and which operation each tool call and token was answered with."""

    world: World
    asked: list[Ask] = field(default_factory=list)
    answered: dict[tuple[str, str], str] = field(default_factory=dict)

    def ask(self) -> None:
        """One tool call: a new one, a repeated one, or one with something changed."""
        ask = self._draw()
        self.asked.append(ask)
        wish = ask.wish
        result = self.world.run(
            f"ask {wish.order_id}{wish.reference} {wish.amount} of {wish.payment} "
            f"call={ask.tool_call} token={ask.token}",
            lambda: request_refund(
                engine=self.world.engine,
                wish=wish,
                asker=_asker(ask.token, ask.tool_call),
            ),
            expected=REFUSALS,
        )
        if isinstance(result, Operation):
            self._hear(result)
            self._same_operation_again(ask, str(result.pk))

    def ask_for_several(self) -> None:
        """One order that was paid twice: both refunds are asked for in one call."""
        wishes = [_wish("G", "", 2_500, payment) for payment in ("ch_1", "ch_2")]
        token = self.world.rng.choice(("", "g1"))
        result = self.world.run(
            f"ask for a group token={token}",
            lambda: request_group(engine=self.world.engine, wishes=wishes, asker=_asker(token, "")),
            expected=REFUSALS,
        )
        if isinstance(result, list):
            for operation in result:
                self._hear(operation)

    def _hear(self, operation: Operation) -> None:
        """The answer as the API words it; what it says must be true now."""
        _, body = answer(operation, now=self.world.clock.as_seen())
        self.world.note("answer", body["status"], operation.pk)
        refunds = self.world.provider.refunds_of(str(operation.pk))
        live = [made for made in refunds if made.refund.live]
        named = self.world.provider.made.get(operation.provider_object_id)
        refunded = named is not None and named.succeeded_once and operation.status == "succeeded"
        if body["status"] == "refunded" and not refunded:
            raise SimulationFailed(
                "answers_true", f"{operation.pk} was called refunded, and no refund is there"
            )
        contested = operation.attention or operation.failure_code == "closed_by_person"
        if body["status"] == "refused" and (
            operation.status != "failed" or (live and not contested)
        ):
            raise SimulationFailed(
                "answers_true", f"{operation.pk} was called refused, and a refund is live"
            )

    def _same_operation_again(self, ask: Ask, operation_id: str) -> None:
        for kind, name in (("call", ask.tool_call), ("token", ask.token)):
            if name and self.answered.setdefault((kind, name), operation_id) != operation_id:
                raise SimulationFailed(
                    "one_operation_per_wish",
                    f"{kind} {name} stands for {self.answered[kind, name]} and {operation_id}",
                )

    def _draw(self) -> Ask:
        rng = self.world.rng
        if self.asked and rng.random() < 0.55:
            before = rng.choice(self.asked)
            kind = rng.choice(
                ("resumed", "resumed", "again", "again", "amount", "payment", "token")
            )
            wish, token, call = before.wish, before.token, f"c{len(self.asked)}"
            match kind:
                case "resumed":
                    return before
                case "amount":
                    wish = replace(wish, amount=wish.amount + rng.choice((-500, 500)))
                    call = before.tool_call if rng.random() < 0.2 else call
                case "payment":
                    wish = replace(wish, payment=wish.payment.replace("ch_", "pi_"))
                case "token":
                    token = rng.choice(("", "t1", "t2"))
            return Ask(wish, token, call if rng.random() < 0.7 else "")
        wish = _wish(
            *rng.choice(self.world.weather.orders).partition("-")[::2],
            rng.choice((2_500, 2_500, 2_500, 4_000)),
            rng.choice(("ch_1", "ch_1", "pi_1")),
        )
        token = rng.choice(("", "", "t1"))
        return Ask(wish, token, f"c{len(self.asked)}" if rng.random() < 0.7 else "")


def _asker(token: str, tool_call: str) -> Asker:
    return Asker(
        actor=_AGENT,
        api_key=None,
        token=token,
        tool_call_id=tool_call,
        agent_run_id="run" if tool_call else "",
    )


def _wish(order: str, reference: str, amount: int, payment: str) -> RefundInput:
    return RefundInput(
        account="",
        order_id=order,
        reference=reference,
        amount=amount,
        currency="usd",
        payment=payment,
    )
