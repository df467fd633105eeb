"""The local stack: it serves, comes back after kills, and leaves nothing running."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest
import requests

from reconcile.local.stack import LocalStack, StackError

# One process runs all of them, so that the stack they share is started once.
pytestmark = pytest.mark.xdist_group("local_stack")

ROOT = Path(__file__).resolve().parents[2]


def manage(*arguments: str, data_dir: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(data_dir) | env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def environment(data_dir: Path) -> dict[str, str]:
    ours = ("RECONCILE_", "STRIPE_", "CELERY_", "DATABASE_", "DJANGO_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"RECONCILE_DATA_DIR": str(data_dir), "RECONCILE_EMBEDDED_DURABLE": "0"}


def processes_of(data_dir: Path) -> list[psutil.Process]:
    """Every process with the folder in its command or its environment, and their children."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.environ().get("RECONCILE_DATA_DIR", "")]
        except psutil.Error:
            continue
        if any(str(data_dir) in word for word in words) and process.pid != os.getpid():
            found.append(process)
    return found


def eventually(what: Callable[[], bool], within_s: float = 180) -> None:
    deadline = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.1)


def is_ready(stack: LocalStack) -> bool:
    try:
        with urllib.request.urlopen(f"{stack.url}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="module")
def stack(local_stack_factory: Callable[..., LocalStack]) -> LocalStack:
    return local_stack_factory()


def test_a_killed_web_server_comes_back(stack: LocalStack) -> None:
    killed = stack.pids()["web"]
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: stack.pids().get("web", killed) != killed and is_ready(stack))


def test_a_killed_worker_comes_back_without_its_old_pool(stack: LocalStack) -> None:
    eventually(lambda: len(stack.processes("worker")) == 3)
    old = stack.processes("worker")
    os.kill(old[0], signal.SIGKILL)
    eventually(lambda: stack.pids().get("worker", old[0]) != old[0])
    eventually(lambda: not any(psutil.pid_exists(pid) for pid in old))


def test_a_killed_database_comes_back(stack: LocalStack) -> None:
    pid_file = stack.data_dir / "postgres" / "data" / "postmaster.pid"
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
    eventually(lambda: not is_ready(stack), within_s=10)
    eventually(lambda: is_ready(stack))


def test_forty_half_sent_bodies_let_the_site_go_after_a_while(stack: LocalStack) -> None:
    """A client that sends half a body keeps no thread for long."""
    eventually(lambda: is_ready(stack))
    where = urlsplit(stack.url)
    clients = [
        socket.create_connection((str(where.hostname), int(where.port or 0))) for _ in "x" * 40
    ]
    try:
        for client in clients:
            client.sendall(
                b"POST /webhooks/stripe/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                b"Content-Length: 500\r\n\r\nabc"
            )
        deadline = time.monotonic() + 40
        while True:
            try:
                answer = requests.get(f"{stack.url}/healthz", timeout=5)
                break
            except requests.RequestException:
                assert time.monotonic() < deadline
        assert answer.status_code == 200
        clients[0].settimeout(30)
        assert clients[0].recv(100).startswith(b"HTTP/1.1 400")
    finally:
        for client in clients:
            client.close()


def test_a_command_reaches_the_running_database_and_leaves_it_running(stack: LocalStack) -> None:
    pid_file = stack.data_dir / "postgres" / "data" / "postmaster.pid"
    before = pid_file.read_text()
    done = manage("migrate", "--check", data_dir=stack.data_dir)
    assert done.returncode == 0, done.stderr
    assert pid_file.read_text() == before


def test_the_programs_work_as_a_role_that_owns_nothing(stack: LocalStack) -> None:
    assert "DATABASE_OWNER_URL" not in stack.env
    with psycopg.connect(stack.env["DATABASE_URL"]) as connection:
        for statement in (
            "DELETE FROM operations_auditentry",
            "ALTER TABLE operations_evidence DISABLE TRIGGER USER",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute(statement)
        assert connection.execute("SELECT count(*) FROM operations_operation").fetchone() == (0,)
    web = {psutil.Process(pid).environ().get("DATABASE_URL") for pid in stack.pids().values()}
    assert web == {stack.env["DATABASE_URL"]}


def test_a_command_elsewhere_uses_the_same_sandbox(stack: LocalStack) -> None:
    done = manage(
        "shell",
        "--verbosity=0",
        "--command=from django.conf import settings; print(settings.RECONCILE.stripe_api_base)",
        data_dir=stack.data_dir,
    )
    assert done.stdout.strip() == stack.sandbox_url


def test_a_second_stack_on_the_same_data_is_refused(stack: LocalStack) -> None:
    with pytest.raises(StackError, match="already runs at http"):
        LocalStack(env={"RECONCILE_DATA_DIR": str(stack.data_dir)}).start()
    assert is_ready(stack)


def test_a_port_in_use_is_refused_with_a_sentence(stack: LocalStack, tmp_path: Path) -> None:
    done = manage("run_local", "--port", str(stack.port), data_dir=tmp_path)
    assert done.returncode == 1
    assert f"Port {stack.port}" in done.stderr
    assert "Traceback" not in done.stderr
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGKILL])
def test_run_local_prints_one_line_and_leaves_nothing_running(
    tmp_path: Path, stop_signal: signal.Signals
) -> None:
    command = [sys.executable, "manage.py", "run_local", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("ready http://127.0.0.1:")
        running.send_signal(stop_signal)
        rest, _ = running.communicate(timeout=90)
    assert rest == ""
    assert running.returncode == (-stop_signal if stop_signal == signal.SIGKILL else 0)
    # Nobody waits for the children of a killed one: they notice by themselves, soon.
    within_s = 20 if stop_signal == signal.SIGKILL else 0
    eventually(lambda: processes_of(tmp_path) == [], within_s=within_s)


def test_a_command_starts_the_database_and_stops_it(tmp_path: Path) -> None:
    # Its socket's path would be too long in the folder itself.
    data_dir = tmp_path / ("a long name " * 12).strip()
    done = manage("migrate", "--verbosity=0", data_dir=data_dir)
    assert done.returncode == 0, done.stderr
    assert (data_dir / "postgres" / "data" / "PG_VERSION").exists()
    assert processes_of(data_dir) == []


def test_a_command_that_needs_no_database_starts_none(tmp_path: Path) -> None:
    assert manage("check", data_dir=tmp_path).returncode == 0
    assert not (tmp_path / "postgres").exists()


@pytest.mark.parametrize(
    "command", [["manage.py", "check"], ["-m", "celery", "-A", "reconcile", "report"]]
)
def test_a_wrong_setting_stops_the_start_with_its_sentence(
    tmp_path: Path, command: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment(tmp_path) | {"RECONCILE_LEASE_S": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("RECONCILE_LEASE_S must be longer")
    assert len(done.stderr.splitlines()) == 1
