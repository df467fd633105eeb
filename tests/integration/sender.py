"""A process of its own that asks for a refund and may die on the way.

    python -m tests.integration.sender PAYMENT [MOMENT]

`MOMENT` is where it kills itself: `before_sending`, once the operation and its attempt are
committed, or `after_the_answer`, before a word of it is saved. Its last line says how the
operation stands, or which refusal was raised.
"""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import django


def main(payment: str, moment: str) -> str:
    """Ask once; what came of it in one word."""
    django.setup()
    from operations.services.sending import InProgress

    from .stage import MovingClock, ask, engine_for, opener

    address = os.environ["STRIPE_API_BASE"]
    engine = engine_for(address, MovingClock())
    engine = replace(engine, open_provider=lambda account: _Dying(opener(address)(account), moment))
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        return str(ask(engine, payment).status)
    except InProgress:
        return "in_progress"


class _Dying:
    """The real adapter in a process that ends without a word at the given moment."""

    def __init__(self, provider: Any, moment: str) -> None:
        self._provider = provider
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def create_refund(
        self, *, parameters: Mapping[str, Any], idempotency_key: str, account: str
    ) -> Any:
        self._die_at("before_sending")
        answer = self._provider.create_refund(
            parameters=parameters, idempotency_key=idempotency_key, account=account
        )
        self._die_at("after_the_answer")
        return answer

    def _die_at(self, moment: str) -> None:
        if moment == self._moment:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""), flush=True)
