"""Ties a process's life to its parent's: `python tether.py COMMAND…` runs COMMAND that way.

Without it, a supervisor that is killed outright would leave its children running. Linux only;
elsewhere the next start of the local stack ends what was left.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_MARK = "RECONCILE_TETHERED"


def is_tethered() -> bool:
    """Say whether this process belongs to a local stack."""
    return os.environ.get(_MARK) == "1"


def die_with_parent(with_signal: int = signal.SIGKILL) -> None:
    """Ask the kernel to send this process a signal when the thread that started it ends."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(with_signal), 0, 0, 0)
    if os.getppid() != parent:  # It ended before we asked.
        os.kill(os.getpid(), with_signal)


if __name__ == "__main__":
    os.environ[_MARK] = "1"
    die_with_parent()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - the supervisor's own commands
