"""Callers: agents that ask for a refund, ask again, and change their mind."""

from dataclasses import dataclass, field

from operations.api.answers import answer
from operations.domain.audit import Actor, ActorKind
from operations.domain.identity import RefundInput
from operations.models import Operation
from operations.services.requesting import (
    Asker,
    ConflictingOperation,
    InputRefused,
    PaymentUnreadable,
    ReusedWithOtherInput,
    request_refund,
)
from operations.services.sending import InProgress
from tests.simulation.world import SimulationFailed, World

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
    answers: int = 0

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
                asker=Asker(
                    actor=_AGENT,
                    api_key=None,
                    token=ask.token,
                    tool_call_id=ask.tool_call,
                    agent_run_id="run" if ask.tool_call else "",
                ),
            ),
            expected=REFUSALS,
        )
        if isinstance(result, Operation):
            self._hear(ask, result)

    def _hear(self, ask: Ask, operation: Operation) -> None:
        """The answer as the API words it; what it says must be true now."""
        self.answers += 1
        _, body = answer(operation, now=self.world.engine.clock())
        self.world.note("answer", body["status"], operation.pk)
        self._same_operation_again(ask, str(operation.pk))
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
        if self.asked and rng.random() < 0.6:
            before = rng.choice(self.asked)
            kind = rng.choice(("resumed", "resumed", "again", "again", "amount", "payment", "token"))
            wish, token, call = before.wish, before.token, f"c{len(self.asked)}"
            match kind:
                case "resumed":
                    return before
                case "amount":
                    wish = _changed(wish, amount=wish.amount + rng.choice((-500, 500)))
                    call = before.tool_call if rng.random() < 0.2 else call
                case "payment":
                    wish = _changed(wish, payment=wish.payment.replace("ch_", "pi_"))
                case "token":
                    token = rng.choice(("", "t1", "t2"))
            return Ask(wish, token, call if rng.random() < 0.7 else "")
        wish = RefundInput(
            account="",
            order_id=rng.choice(("A", "A", "B")),
            reference=rng.choice(("", "", "-1")),
            amount=rng.choice((2_500, 2_500, 4_000)),
            currency="usd",
            payment=rng.choice(("ch_1", "ch_1", "pi_1")),
        )
        token = rng.choice(("", "", "t1"))
        return Ask(wish, token, f"c{len(self.asked)}" if rng.random() < 0.7 else "")


def _changed(wish: RefundInput, *, amount: int = 0, payment: str = "") -> RefundInput:
    return RefundInput(
        account=wish.account,
        order_id=wish.order_id,
        reference=wish.reference,
        amount=amount or wish.amount,
        currency=wish.currency,
        payment=payment or wish.payment,
    )
