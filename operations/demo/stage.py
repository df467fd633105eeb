"""The stage of the story: the local stack with its own sandbox, set to take seconds, not hours."""

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from reconcile.local.stack import LocalStack

#: The story relies on these, so they win over the environment; "" means: as if not set. Without
#: Stripe's variables the stack starts the sandbox: no story ever reaches a real account.
ENVIRONMENT = {
    "STRIPE_API_KEY": "",
    "STRIPE_API_BASE": "",
    "STRIPE_WEBHOOK_SECRETS": "",
    "RECONCILE_REQUEST_TIMEOUT_S": "1,2",
    "RECONCILE_CALL_DEADLINE_S": "12",
    "RECONCILE_LEASE_S": "5",
    "RECONCILE_BACKOFF_BASE_S": "0.1",
    "RECONCILE_LOOKUP_SCHEDULE_S": "1,2,3,4,60,300,900,3600,21600,86400",
    "RECONCILE_MAX_ATTEMPTS_PER_CALL": "3",
    "RECONCILE_MAX_ATTEMPTS_PER_OPERATION": "6",
    "RECONCILE_KEY_WINDOW_S": "",
    "RECONCILE_KEY_SAFETY_MARGIN_S": "",
}
LOG_NAME = "demo.log"


class StackLog:
    """Keeps what the stack's programs print in a file, so that the story can be read."""

    def __init__(self, path: Path, show: Callable[[str], None]) -> None:
        self.path = path
        self._show = show
        self._guard = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")

    def say(self, name: str, line: str) -> None:
        """Keep one line of a program; what the stack itself says is shown as well."""
        stamp = datetime.now().astimezone().strftime("%H:%M:%S.%f")[:-3]
        with self._guard, self.path.open("a", encoding="utf-8") as log:
            log.write(f"{stamp} {name:<8} | {line}\n")
        if name == "stack":
            self._show(line)


def make_stack(*, data_dir: Path, port: int, log: StackLog) -> LocalStack:
    """The stack of the story, not yet started. Raises StackError."""
    return LocalStack(
        port=port, env={**ENVIRONMENT, "RECONCILE_DATA_DIR": str(data_dir)}, say=log.say
    )
