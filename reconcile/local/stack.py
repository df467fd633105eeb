"""The whole product on one machine, for `run_local`, the demo and the tests."""

import fcntl
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from reconcile import config
from reconcile.local import state
from reconcile.local.embedded import EmbeddedServer
from reconcile.local.postgres import postgres_in
from reconcile.local.supervisor import Program, Supervisor
from reconcile.local.valkey import broker_url, valkey_in

BASE_DIR = Path(__file__).resolve().parent.parent.parent
HOST = "127.0.0.1"
_SANDBOX = "sandbox"
_LOOK_AFTER_S = 0.5
# In a container everything runs as root; Celery's long warning about it helps nobody there.
_QUIET_AS_ROOT = {"PYTHONWARNINGS": "ignore:You're running the worker with superuser"}


class StackError(Exception):
    """The stack could not be started; the text is a sentence for people."""


def say_to_stderr(name: str, line: str) -> None:
    """Print a line of output with its program's name before it."""
    with suppress(OSError, ValueError):  # Nobody reads any more; that stops nothing.
        sys.stderr.write(f"{name:<8} | {line}\n")
        sys.stderr.flush()


class LocalStack:
    """Database, broker, sandbox, web, worker and beat: started, watched and stopped as one.

    What `env` (over this process's environment) gives by address is used and not started:
    `DATABASE_URL`, `CELERY_BROKER_URL`, and Stripe itself with `STRIPE_API_KEY`. Port 0 means any
    free port.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        env: Mapping[str, str] | None = None,
        web_workers: int = 2,
        say: Callable[[str, str], None] = say_to_stderr,
    ) -> None:
        self._env = {name: text for name, text in {**os.environ, **(env or {})}.items() if text}
        self.config = config.read(self._env, base_dir=BASE_DIR)
        self.data_dir = self.config.data_dir
        self.port = port
        self.sandbox_url: str | None = None
        self._web_workers = web_workers
        self._say = say
        # Who owns the tables is for `migrate` alone to know.
        owner_url = self._env.pop("DATABASE_OWNER_URL", "")
        self._owner = {"DATABASE_OWNER_URL": owner_url} if owner_url else {}
        self._servers: list[EmbeddedServer] = []
        self._supervisor = Supervisor(cwd=BASE_DIR, say=say, on_change=self._write_state)
        self._lock: int | None = None
        self.asked_to_stop = threading.Event()
        """Set it, from a signal handler say, to break off a start; `stop` sets it too."""

    def __enter__(self) -> Self:
        try:
            self.start()
            self.wait_ready()
        except BaseException:
            self.stop(grace_s=1)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of the stack's programs, for a command that shall work on its data."""
        return dict(self._env)

    def pids(self) -> dict[str, int]:
        """Answer the process id of each of `sandbox`, `web`, `worker` and `beat` that runs now."""
        return self._supervisor.pids()

    def processes(self, name: str) -> list[int]:
        """Answer the process ids of a program and its own processes, the program's first.

        Web requests and tasks run in the latter.
        """
        pid = self.pids()[name]
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]

    # Starting.

    def start(self) -> None:
        """Start everything; returns when the database is migrated and the programs are launched."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._take_the_data_dir()
        self.port = self._own_port()
        state.end_leftovers(self.data_dir, say=lambda line: self._say("stack", line))
        self._complete_env()
        self._start_servers()
        if self.sandbox_url:
            self._supervisor.start(self._sandbox(self.sandbox_url))
        self._manage("migrate", "--noinput", "-v", "1", env=self._env | self._owner)
        for program in self._programs():
            self._supervisor.start(program)
        threading.Thread(target=self._look_after_servers, daemon=True).start()

    def wait_ready(self, timeout_s: float = 90) -> None:
        """Return when the site answers; raises StackError when it doesn't in time."""
        deadline = time.monotonic() + timeout_s
        while not self._is_ready():
            for name in self._names():
                if self._supervisor.exits(name) >= 3:
                    raise StackError(self._why(f"{name} does not stay up"))
            if time.monotonic() > deadline:
                raise StackError(self._why(f"the site did not answer within {timeout_s:g} s"))
            self.asked_to_stop.wait(0.1)
            self._go_on()

    def _go_on(self) -> None:
        if self.asked_to_stop.is_set():
            raise StackError("The start was broken off.")

    def stop(self, *, grace_s: float = 10) -> None:
        """Stop everything that was started, and wait for its end; whoever is slower is killed."""
        self.asked_to_stop.set()
        self._supervisor.stop(grace_s=grace_s, last=(_SANDBOX,))
        for server in self._servers:
            server.release()
        self._servers = []
        if self._lock is not None:
            state.forget(self.data_dir)
            os.close(self._lock)
            self._lock = None

    def kill(self) -> None:
        """Make a `stop` that is under way end at once."""
        self._supervisor.kill()

    def _take_the_data_dir(self) -> None:
        lock = os.open(self.data_dir / "stack.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            running = state.read(self.data_dir)
            where = f" at {running.url}" if running else ""
            raise StackError(
                f"A local stack already runs{where} on the data in {self.data_dir}. "
                "Stop it, or set RECONCILE_DATA_DIR to another folder."
            ) from None
        self._lock = lock

    def _own_port(self) -> int:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, self.port))
            except OSError as error:
                raise StackError(
                    f"Port {self.port} on {HOST} can't be used ({error.strerror}). "
                    "Choose another one with --port."
                ) from None
            return int(probe.getsockname()[1])

    def _complete_env(self) -> None:
        self._env |= {
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SETTINGS_MODULE": "reconcile.settings",
            "RECONCILE_DATA_DIR": str(self.data_dir),
            "RECONCILE_INSECURE_LOCAL": "1",
        }
        # Notices may go to receivers on this machine, which has no other one to reach.
        self._env.setdefault("RECONCILE_NOTICES_ALLOW_NETWORKS", "127.0.0.0/8,::1/128")
        if "STRIPE_API_KEY" in self._env:
            return
        self.sandbox_url = f"http://{HOST}:{self._sandbox_port()}"
        self._env |= {
            "STRIPE_API_KEY": config.SANDBOX_API_KEY,
            "STRIPE_API_BASE": self.sandbox_url,
        }
        self._env.setdefault("STRIPE_WEBHOOK_SECRETS", state.sandbox_webhook_secret(self.data_dir))

    @staticmethod
    def _sandbox_port() -> int:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            return int(probe.getsockname()[1])

    def _start_servers(self) -> None:
        if "DATABASE_URL" not in self._env:
            postgres = postgres_in(self.data_dir)
            self._servers.append(postgres)
            self._go_on()
            postgres.ensure()
            self._env["DATABASE_URL"] = postgres.application_url
            self._owner = {"DATABASE_OWNER_URL": postgres.url}
        if "CELERY_BROKER_URL" not in self._env:
            valkey = valkey_in(self.data_dir)
            self._servers.append(valkey)
            self._go_on()
            valkey.ensure()
            self._env["CELERY_BROKER_URL"] = broker_url(self.data_dir)

    def _manage(self, *arguments: str, env: Mapping[str, str]) -> None:
        self._go_on()
        command = subprocess.Popen(  # noqa: S603
            [sys.executable, "manage.py", *arguments],
            cwd=BASE_DIR,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        output = None
        while output is None:
            try:
                output, _ = command.communicate(timeout=0.1)
            except subprocess.TimeoutExpired:
                if self.asked_to_stop.is_set():
                    command.terminate()
        self._go_on()
        lines = output.splitlines()
        for line in lines:
            self._say(arguments[0], line)
        if command.returncode != 0:
            raise StackError(
                f"manage.py {arguments[0]} failed: {lines[-1] if lines else 'no output'}"
            )

    def _sandbox(self, url: str) -> Program:
        command = [
            *(sys.executable, "-m", "operations.sandbox"),
            *("--host", HOST, "--port", url.rsplit(":", 1)[1]),
            *("--webhook-url", f"{self.url}/webhooks/stripe/"),
            *("--webhook-secret", self._env["STRIPE_WEBHOOK_SECRETS"].split(",")[0].strip()),
            *("--state", str(self.data_dir / "sandbox.json")),
        ]
        return Program(name=_SANDBOX, command=command, env=self._env)

    def _programs(self) -> list[Program]:
        gunicorn = [
            *(sys.executable, "-m", "gunicorn", "--config", "python:reconcile.gunicorn_conf"),
            *("--bind", f"{HOST}:{self.port}", "--workers", str(self._web_workers)),
            "reconcile.asgi",
        ]
        celery = [sys.executable, "-m", "celery", "--app", "reconcile", "--quiet"]
        worker = [
            *(*celery, "worker", "--pool", "prefork", "--concurrency", "2"),
            *("--without-gossip", "--without-mingle", "--loglevel", "INFO"),
        ]
        beat = [*celery, "beat", "--pidfile", "", "--loglevel", "WARNING"]
        return [
            Program(name="web", command=gunicorn, env=self._env),
            Program(name="worker", command=worker, env=self._env | _QUIET_AS_ROOT),
            Program(name="beat", command=beat, env=self._env),
        ]

    # Watching.

    def _names(self) -> list[str]:
        return [*([_SANDBOX] if self.sandbox_url else []), "web", "worker", "beat"]

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except OSError:
            return False

    def _why(self, what: str) -> str:
        """Say what is wrong, with the last words of the programs that ended."""
        words = [
            f"{name}: {self._supervisor.last_lines(name)[-1]}"
            for name in self._names()
            if self._supervisor.exits(name) and self._supervisor.last_lines(name)
        ]
        return f"The local stack is not ready: {what}. {' '.join(words)}".rstrip()

    def _look_after_servers(self) -> None:
        """Start the database or the broker again when one of them died."""
        while not self.asked_to_stop.wait(_LOOK_AFTER_S):
            for server in self._servers:
                if server.is_alive():
                    continue
                self._say("stack", f"{server.name} ended; starting it again")
                try:
                    server.ensure()
                except Exception as error:
                    self._say("stack", str(error))

    def _write_state(self) -> None:
        if self._lock is not None:
            state.write(
                self.data_dir,
                state.Running(url=self.url, sandbox_url=self.sandbox_url, pids=self.pids()),
            )
