"""What happens around an order, by scene: who asks when, and who kills what."""

import threading
import time
from collections.abc import Callable
from typing import Any

from operations.demo.agent import IN_PROGRESS, Told
from operations.demo.player import Play, Played, Stage
from operations.demo.records import sender_of
from operations.demo.story import Scene

_FIRST, _SECOND = "toolu_01", "toolu_02"


class NotReachedError(Exception):
    """The story did not come to the point that a scene needs."""


def _wish(played: Played, **more: str) -> dict[str, Any]:
    order = played.order
    return {
        "order_id": order.number,
        "amount": order.amount,
        "currency": order.currency,
        "payment": played.payment_intent,
        "reason": "requested_by_customer",
        **more,
    }


def ask(stage: Stage, played: Played) -> None:
    """The agent asks once."""
    played.agent.ask(_wish(played), tool_call=_FIRST)


def ask_again(stage: Stage, played: Played) -> None:
    """The agent asks, is told that it is not known, and asks again by another tool call."""
    told = played.agent.ask(_wish(played), tool_call=_FIRST)
    if told.word not in ("unconfirmed", "checking"):
        raise NotReachedError(f"the first call was told {told.word}")
    # What is being found out is not waited for: asking again must change nothing.
    time.sleep(told.retry_after_s if told.word == "unconfirmed" else 1)
    played.agent.ask_until_answered(_wish(played), tool_call=_SECOND, until=stage.until)


def key_in_use(stage: Stage, played: Played) -> None:
    """The first send runs on at the provider until the agent's call is over."""
    told = played.agent.ask(_wish(played), tool_call=_FIRST)
    if told.word != "unconfirmed":
        raise NotReachedError(f"the first call was told {told.word}")
    for call in stage.control.in_flight():
        if played.charge in call["payments"]:
            stage.control.let_go(call["key"])
    time.sleep(told.retry_after_s)
    played.agent.ask_until_answered(_wish(played), tool_call=_SECOND, until=stage.until)


def bank_finishes(stage: Stage, played: Played) -> None:
    """The bank takes a second to finish a pending refund."""
    told = played.agent.ask(_wish(played), tool_call=_FIRST)
    if not told.provider_object_id:
        raise NotReachedError(f"the call was told {told.word}, without a refund")
    time.sleep(1)
    stage.control.set_refund_status(told.provider_object_id, "succeeded")


def two_at_once(stage: Stage, played: Played) -> None:
    """Two tool calls for one refund, at the same moment."""
    _side_by_side(
        lambda tool_call=tool_call: played.agent.ask_until_answered(
            _wish(played), tool_call=tool_call, until=stage.until
        )
        for tool_call in (_FIRST, _SECOND)
    )


def two_references(stage: Stage, played: Played) -> None:
    """Two equal items go back: the reference tells two wishes from one that is repeated."""
    played.agent.ask(_wish(played, reference="return-1"), tool_call=_FIRST)
    played.agent.ask(_wish(played, reference="return-2"), tool_call=_SECOND)


def already_refunded(stage: Stage, played: Played) -> None:
    """Somebody refunds the whole payment from the provider's dashboard, and then the agent asks."""
    stage.control.refund_outside(played.charge)
    played.outside = 1
    played.agent.ask(_wish(played), tool_call=_FIRST)


def web_killed(stage: Stage, played: Played) -> None:
    """The web process that sends is killed; the agent asks the next one what became of it."""
    first = _in_background(lambda: played.agent.ask(_wish(played), tool_call=_FIRST))
    _kill_the_sender(stage, played, "web")
    first.join(max(0.0, stage.until - time.monotonic()))
    told: Told = played.agent.ask(_wish(played), tool_call=_SECOND)
    if told.word != IN_PROGRESS:
        raise NotReachedError(f"the second call was told {told.word}")


def worker_killed(stage: Stage, played: Played) -> None:
    """Nobody asks again, so a worker sends again by itself, and is killed meanwhile."""
    played.agent.ask(_wish(played), tool_call=_FIRST)
    _kill_the_sender(stage, played, "worker")


def _kill_the_sender(stage: Stage, played: Played, program: str) -> None:
    """Kill the process whose send is at the provider, after the refund was made there."""
    operation_id = _wait_for_effect(stage, played)
    pid = sender_of(operation_id)
    if pid is None:
        raise NotReachedError("nobody holds the lease of this operation")
    stage.kill(program, pid)
    stage.say(played.order.number, f"{program} process {pid} is killed (SIGKILL)")


def _wait_for_effect(stage: Stage, played: Played) -> str:
    """The operation of a send that the provider has carried out and not yet answered."""
    while time.monotonic() < stage.until:
        for call in stage.control.in_flight():
            if played.charge in call["payments"] and call["executed"]:
                return str(call["operation"])
        time.sleep(0.02)
    raise NotReachedError("no send of this order came to the provider")


def _side_by_side(actions: Any) -> None:
    threads = [_in_background(action) for action in actions]
    for thread in threads:
        thread.join()


def _in_background(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


SCENES: dict[Scene, Play] = {
    Scene.ASK: ask,
    Scene.ASK_AGAIN: ask_again,
    Scene.KEY_IN_USE: key_in_use,
    Scene.BANK_FINISHES: bank_finishes,
    Scene.TWO_AT_ONCE: two_at_once,
    Scene.TWO_REFERENCES: two_references,
    Scene.ALREADY_REFUNDED: already_refunded,
    Scene.WEB_KILLED: web_killed,
    Scene.WORKER_KILLED: worker_killed,
}
