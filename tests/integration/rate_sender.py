"""A process of its own that sends many refunds at once, as fast as the account's rate allows.

    python -m tests.integration.rate_sender WRITES_PER_S PAYMENT…

One line of standard input lets it go; its last line says how many sends left.
"""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import django

THREADS = 6


def main(writes_per_s: float, payments: Sequence[str]) -> int:
    """Send one refund of each payment; how many were sent."""
    django.setup()
    import time

    from django.db import connection

    from operations.domain.answers import AnswerKind
    from operations.models import Account
    from operations.providers.stripe import STRIPE_CONTRACT

    from .stage import MovingClock, engine_for
    from .wire_provider import provider_at

    url = os.environ["STRIPE_API_BASE"]
    contract = replace(STRIPE_CONTRACT, writes_per_s=writes_per_s)
    engine = replace(
        engine_for(url, MovingClock()),
        sleep=time.sleep,
        open_provider=lambda account: provider_at(url, contract=contract),
    )
    account = Account.objects.get()

    def send(payment: str) -> bool:
        answer = engine.provider(account).create_refund(
            parameters={"charge": payment, "amount": 100},
            idempotency_key=f"key-{payment}",
            account="",
        )
        return answer.kind is AnswerKind.RESPONSE

    def work(rows: Sequence[str]) -> int:
        try:
            return sum(map(send, rows))
        finally:
            connection.close()

    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(work, [payments[start::THREADS] for start in range(THREADS)]))


if __name__ == "__main__":
    print(main(float(sys.argv[1]), sys.argv[2:]), flush=True)
