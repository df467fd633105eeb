"""The orders of the story as data: what is asked, what goes wrong, and how it has to end.

Amounts in the currency's Stripe unit, times in seconds. Every refund is a partial one: a second
refund would fit into the payment, so that only the product stands between a retry and double money.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from operations.domain.statuses import Status, UnknownReason


class Scene(StrEnum):
    """What the people and machines around an order do."""

    ASK = "ask"
    ASK_AGAIN = "ask_again"
    KEY_IN_USE = "key_in_use"
    BANK_FINISHES = "bank_finishes"
    TWO_AT_ONCE = "two_at_once"
    TWO_REFERENCES = "two_references"
    ALREADY_REFUNDED = "already_refunded"
    WEB_KILLED = "web_killed"
    WORKER_KILLED = "worker_killed"


class Webhooks(StrEnum):
    """How the provider's webhooks for a payment travel. `HOLD`: until the agent has its answers."""

    DELIVER = "deliver"
    HOLD = "hold"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a send meets at the provider; the fields are those of `SandboxControl.fault`."""

    kind: str
    when: str = "before"
    times: int = 1
    seconds: float | None = None
    code: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How an order has to end. `refunds` by the provider's own count.

    `told` must have been told to the agent in this order. `attempts` is None where the moment
    decides how many there are.
    """

    status: Status | None = Status.SUCCEEDED
    reason: UnknownReason | None = None
    operations: int = 1
    refunds: int = 1
    attempts: int | None = 1
    told: tuple[str, ...] = ("refunded",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order. `amount` is asked back of the `captured`; twice with two references."""

    number: str
    about: str
    amount: int
    captured: int
    currency: str = "usd"
    scene: Scene = Scene.ASK
    faults: tuple[Fault, ...] = ()
    webhooks: Webhooks = Webhooks.DELIVER
    end: End = End()

    def named(self, number: str) -> "Order":
        """The same order under another number."""
        return replace(self, number=number)


# A hang outlasts the product's read timeout of two seconds; a slow answer stays below it. The last
# one is ended by its scene.
_HANG_S = 4.0
_SLOW_S = 1.5
_LONG_S = 30.0

STORY = (
    Order(
        number="4417",
        about="the answers are lost after Stripe acted; the agent tries again",
        amount=3_800,
        captured=12_000,
        scene=Scene.ASK_AGAIN,
        faults=(Fault(kind="drop", when="after", times=3),),
        webhooks=Webhooks.HOLD,
        end=End(attempts=4, told=("unconfirmed", "refunded")),
    ),
    Order(
        number="4418",
        about="nothing goes wrong",
        amount=1_250,
        captured=4_900,
    ),
    Order(
        number="4419",
        about="a 500 after the refund was made",
        amount=2_400,
        captured=9_600,
        faults=(Fault(kind="500", when="after"),),
        webhooks=Webhooks.HOLD,
        end=End(told=("checking", "refunded")),
    ),
    Order(
        number="4420",
        about="a 500 before anything was made; the agent insists",
        amount=5_100,
        captured=15_000,
        scene=Scene.ASK_AGAIN,
        faults=(Fault(kind="500"),),
        end=End(
            status=Status.UNKNOWN,
            reason=UnknownReason.SERVER_ERROR,
            refunds=0,
            told=("checking",),
        ),
    ),
    Order(
        number="4421",
        about="the answer hangs past the timeout",
        amount=1_999,
        captured=7_500,
        faults=(Fault(kind="hang", when="after", seconds=_HANG_S),),
        webhooks=Webhooks.HOLD,
        end=End(attempts=2),
    ),
    Order(
        number="4422",
        about="429, and then yes (in yen)",
        amount=4_200,
        captured=18_000,
        currency="jpy",
        faults=(Fault(kind="429"),),
        end=End(attempts=2),
    ),
    Order(
        number="4423",
        about="409, as the first send still runs at Stripe",
        amount=3_300,
        captured=8_800,
        scene=Scene.KEY_IN_USE,
        faults=(Fault(kind="slow", when="after", seconds=_LONG_S),),
        webhooks=Webhooks.HOLD,
        end=End(attempts=4, told=("unconfirmed", "refunded")),
    ),
    Order(
        number="4424",
        about="refunded elsewhere before: nothing is left to refund",
        amount=6_000,
        captured=6_000,
        scene=Scene.ALREADY_REFUNDED,
        end=End(status=None, operations=0, refunds=0, attempts=0, told=("422 amount",)),
    ),
    Order(
        number="4425",
        about="only the send finds out that it is refunded already",
        amount=2_750,
        captured=11_000,
        faults=(
            Fault(
                kind="refuse",
                code="charge_already_refunded",
                message="The charge has already been refunded.",
            ),
        ),
        end=End(
            status=Status.UNKNOWN,
            reason=UnknownReason.UNSAFE_REFUSAL,
            refunds=0,
            told=("checking",),
        ),
    ),
    Order(
        number="4426",
        about="refused: the customer disputes the charge",
        amount=4_400,
        captured=13_200,
        faults=(
            Fault(
                kind="refuse",
                code="charge_disputed",
                message="The charge has been charged back.",
            ),
        ),
        end=End(status=Status.FAILED, refunds=0, told=("refused",)),
    ),
    Order(
        number="4427",
        about="pending at the bank; a webhook brings the end",
        amount=7_700,
        captured=23_100,
        currency="eur",
        scene=Scene.BANK_FINISHES,
        faults=(Fault(kind="pending"),),
        end=End(told=("processing", "refunded")),
    ),
    Order(
        number="4428",
        about="the webhook comes before the answer",
        amount=1_575,
        captured=6_300,
        faults=(Fault(kind="slow", when="after", seconds=_SLOW_S),),
    ),
    Order(
        number="4429",
        about="a 500 after the refund, and the webhook is lost too",
        amount=2_980,
        captured=9_900,
        faults=(Fault(kind="500", when="after"),),
        webhooks=Webhooks.DROP,
        end=End(told=("checking", "refunded")),
    ),
    Order(
        number="4430",
        about="two calls at the same moment",
        amount=8_250,
        captured=24_750,
        scene=Scene.TWO_AT_ONCE,
        faults=(Fault(kind="slow", when="after", seconds=_SLOW_S),),
        webhooks=Webhooks.HOLD,
        end=End(told=("in_progress", "refunded")),
    ),
    Order(
        number="4431",
        about="two equal items are returned: two refunds that are both meant",
        amount=2_000,
        captured=10_000,
        scene=Scene.TWO_REFERENCES,
        end=End(operations=2, refunds=2, attempts=2, told=("refunded", "refunded")),
    ),
    Order(
        number="4432",
        about="the web process is killed after Stripe acted, before we knew",
        amount=9_300,
        captured=27_900,
        scene=Scene.WEB_KILLED,
        faults=(Fault(kind="slow", when="after", seconds=_HANG_S),),
        webhooks=Webhooks.DROP,
        end=End(attempts=None, told=("no answer", "in_progress", "refunded")),
    ),
    Order(
        number="4433",
        about="a worker is killed while it sends again in the background",
        amount=3_650,
        captured=14_600,
        scene=Scene.WORKER_KILLED,
        faults=(
            Fault(kind="drop", times=3),
            Fault(kind="slow", when="after", seconds=_HANG_S),
        ),
        webhooks=Webhooks.DROP,
        end=End(attempts=None, told=("unconfirmed", "refunded")),
    ),
)
