"""`python -m operations.sandbox`: runs the sandbox until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from .assembly import DEFAULT_SIGNING
from .idempotency import DEFAULT_WINDOW_S
from .promises import CONTRACTS
from .running import Sandbox


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line; windows and delays in seconds."""
    parser = argparse.ArgumentParser(prog="python -m operations.sandbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--webhook-url", help="where events are posted; without it, nowhere")
    parser.add_argument("--webhook-secret", default=DEFAULT_SIGNING)
    parser.add_argument(
        "--account-webhook",
        action="append",
        default=[],
        metavar="ACCOUNT=URL",
        help="another address for one connected account; can be repeated",
    )
    parser.add_argument("--state", type=Path, help="file that keeps the state over restarts")
    parser.add_argument("--key-window-s", type=float, default=DEFAULT_WINDOW_S)
    parser.add_argument("--webhook-base-delay-s", type=float, default=0.5)
    parser.add_argument(
        "--contract",
        choices=tuple(CONTRACTS),
        default="stripe",
        help="what is promised about keys, answers and lists",
    )
    parsed = parser.parse_args(arguments)
    if any("=" not in pair for pair in parsed.account_webhook):
        parser.error("--account-webhook takes ACCOUNT=URL")
    return parsed


def main(arguments: list[str]) -> int:
    """Serve until told to stop."""
    given = parse(arguments)
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    sandbox = Sandbox(
        host=given.host,
        port=given.port,
        webhook_url=given.webhook_url,
        webhook_secret=given.webhook_secret,
        state=given.state,
        key_window_s=given.key_window_s,
        account_webhooks=dict(pair.split("=", 1) for pair in given.account_webhook),
        webhook_base_delay_s=given.webhook_base_delay_s,
        contract=given.contract,
    )
    try:
        sandbox.start()
    except OSError as error:
        sys.stderr.write(f"the sandbox can't listen on {given.host}:{given.port}: {error}\n")
        return 1
    sys.stdout.write(f"sandbox ready {sandbox.url}\n")
    sys.stdout.flush()
    over.wait()
    sandbox.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
