"""The peer: DBOS, run by the Python of its own venv. Reads "threads seconds" lines, answers counts.

It does what our services do around a send: a durable workflow with one step, waited for.
"""

import sys
import threading
import time
from typing import Any

from dbos import DBOS  # type: ignore[import-not-found]

_ORDERS = iter(range(1, sys.maxsize))


def main(url: str) -> None:
    """Serve turns until standard input ends."""
    config: dict[str, Any] = {
        "name": "bench",
        "system_database_url": url,
        "run_admin_server": False,
        "log_level": "ERROR",
    }
    DBOS(config=config)

    @DBOS.step()  # type: ignore[untyped-decorator]
    def refund(order: int) -> dict[str, Any]:
        return {"id": f"re_{order}", "status": "succeeded", "amount": 1_234}

    @DBOS.workflow()  # type: ignore[untyped-decorator]
    def refund_workflow(order: int) -> dict[str, Any]:
        answer: dict[str, Any] = refund(order)
        return answer

    DBOS.launch()
    say("ready")
    for line in sys.stdin:
        threads, seconds = line.split()
        say(turn(refund_workflow, int(threads), float(seconds)))
    DBOS.destroy()


def turn(act: Any, threads: int, seconds: float) -> int:
    """How many workflows ended in this time, started from so many threads."""
    counts = [0] * threads
    ends_at = time.monotonic() + seconds

    def work(number: int) -> None:
        while time.monotonic() < ends_at:
            act(next(_ORDERS))
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts)


def say(word: object) -> None:
    """One line to the bench."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
