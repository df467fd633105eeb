"""Keeps one embedded server running for as long as anybody uses it; a program of its own.

Usage: `python -I keeper.py JSON`, see `main`. It needs the standard library only, so that it starts
in a few milliseconds.

Users hold a shared lock on the file `users`. The kernel drops a lock when its process ends, however
it ends, so a count of users can't go stale. When this program gets the lock for itself alone,
nobody uses the server any more, and it stops the server. While the server runs, this program holds
the file `alive` locked.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tether import die_with_parent  # This folder is on the path, as it is run as a program.

POLL_S = 0.25
STOP_S = 30


def main(order: dict[str, Any]) -> int:
    """Run the server.

    `folder` holds the locks, `command` starts the server in the foreground, `log` takes its output,
    `stop_signal` asks it to stop, `uid` and `gid` are whom it runs as or None.
    """
    folder = Path(order["folder"])
    alive = os.open(folder / "alive", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0  # Another one keeps it.
    os.ftruncate(alive, 0)
    os.pwrite(alive, str(os.getpid()).encode(), 0)
    users = os.open(folder / "users", os.O_RDWR | os.O_CREAT, 0o600)

    asked_to_stop: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: asked_to_stop.append(number))

    with open(order["log"], "ab") as log:
        server = subprocess.Popen(  # noqa: S603
            order["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            user=order["uid"],
            group=order["gid"],
            extra_groups=None if order["uid"] is None else [],
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(order["stop_signal"]),
        )
    while not asked_to_stop:
        try:
            return server.wait(POLL_S)
        except subprocess.TimeoutExpired:
            pass
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        break
    # The lock on `users` is held from here on: who wants the server waits until it has stopped.
    server.send_signal(order["stop_signal"])
    try:
        return server.wait(STOP_S)
    except subprocess.TimeoutExpired:
        server.kill()
        return server.wait()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
