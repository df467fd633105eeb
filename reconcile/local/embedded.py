"""A server that belongs to a folder: started by its first user, stopped after its last."""

import atexit
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from reconcile.local import places

_KEEPER = Path(__file__).with_name("keeper.py")
_START_S = 60
_STOP_S = 40
_LARGEST_LOG = 10 * 2**20  # Bytes.


class EmbeddedServer:
    """One process's share in a server that all processes of this machine find by its folder.

    See `keeper` for how use is counted. A process that was forked from one with a share shares that
    one's share.
    """

    name: str
    stop_signal: int

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.socket_dir = places.socket_dir(self.folder)
        self.log = self.folder / "server.log"
        self._share: int | None = None
        self._answered: str | None = None
        self._guard = threading.Lock()

    # What the kinds of server differ in.

    def prepare(self) -> tuple[int, int] | None:
        """Make what the server needs before it starts; answers whom it runs as, or None for us."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """Answer the command that runs the server in the foreground."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Say whether the server takes requests now."""
        raise NotImplementedError

    # What they have in common.

    def ensure(self) -> None:
        """Take a share and see that the server runs; cheap when both are so already."""
        with self._guard:
            if self._share is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._share = os.open(self.folder / "users", os.O_RDWR | os.O_CREAT, 0o600)
                # Waits while the server is being stopped.
                fcntl.flock(self._share, fcntl.LOCK_SH)
                atexit.register(self._release_at_exit, os.getpid())
            # Asked once for each time that the server was started.
            if not self.is_alive() or self._keeper() != self._answered:
                with _FileLock(self.folder / "starting"):
                    self._start()
                self._answered = self._keeper()

    def release(self) -> None:
        """Give the share back; stops the server, and waits for that, if nobody else has one."""
        with self._guard:
            if self._share is None:
                return
            share, self._share = self._share, None
        try:
            fcntl.flock(share, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # Others use it.
        else:
            self._stop()
        finally:
            os.close(share)

    def is_alive(self) -> bool:
        """Say whether a keeper runs, and with it the server, which may still be starting."""
        try:
            handle = os.open(self.folder / "alive", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def _release_at_exit(self, owner: int) -> None:
        if os.getpid() == owner:
            self.release()

    def _keeper(self) -> str:
        """Answer the keeper's pid as it wrote it down."""
        try:
            return (self.folder / "alive").read_text()
        except FileNotFoundError:
            return ""

    def _start(self) -> None:
        deadline = time.monotonic() + _START_S
        launches = 0
        while True:
            if not self.is_alive():
                # A server whose keeper was killed may need a moment to go away first.
                if launches >= 3:
                    raise self._failure("did not start")
                launches += 1
                self._launch()
            if self._wait_until_it_answers(deadline):
                return
            if time.monotonic() > deadline:
                raise self._failure(f"did not answer within {_START_S} seconds")
            time.sleep(0.5)

    def _launch(self) -> None:
        owner = self.prepare()
        if self.log.exists() and self.log.stat().st_size > _LARGEST_LOG:
            self.log.replace(self.log.with_suffix(".log.1"))
        order = {
            "folder": str(self.folder),
            "command": self.command(),
            "log": str(self.log),
            "stop_signal": int(self.stop_signal),
            "uid": owner[0] if owner else None,
            "gid": owner[1] if owner else None,
        }
        with self.log.open("ab") as log:
            keeper = subprocess.Popen(  # noqa: S603
                [sys.executable, "-S", "-E", "-s", str(_KEEPER), json.dumps(order)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        # Reaped by a thread, as nobody waits for it and its end is no news.
        threading.Thread(target=keeper.wait, daemon=True).start()
        while keeper.poll() is None and not self.is_alive():
            time.sleep(0.005)

    def _wait_until_it_answers(self, deadline: float) -> bool:
        while time.monotonic() < deadline:
            if self.answers():
                return True
            if not self.is_alive():
                return False
            time.sleep(0.02)
        return False

    def _stop(self) -> None:
        """End the keeper, which ends the server; called with the lock on `users`."""
        deadline = time.monotonic() + _STOP_S
        told = ""
        while self.is_alive() and time.monotonic() < deadline:
            keeper = self._keeper()
            if keeper != told:
                with suppress(ProcessLookupError):
                    os.kill(int(keeper), signal.SIGTERM)
                told = keeper
            time.sleep(0.01)

    def _failure(self, what: str) -> ImproperlyConfigured:
        tail = self.log.read_text(errors="replace").splitlines()[-5:] if self.log.exists() else []
        return ImproperlyConfigured(
            f"The embedded {self.name} in {self.folder} {what}. Its log ends: {' | '.join(tail)}"
        )


class _FileLock:
    """A lock between processes, for a `with` block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1

    def __enter__(self) -> None:
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._handle, fcntl.LOCK_EX)

    def __exit__(self, *error: object) -> None:
        os.close(self._handle)
