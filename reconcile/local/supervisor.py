"""Runs programs side by side: prefixes their output, restarts those that die, stops them all.

Honcho, the usual choice, ends everything as soon as one program ends; here a killed one comes back.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

_TETHER = Path(__file__).with_name("tether.py")
_POLL_S = 0.1
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0
# A program that ran for this long was all right: the pauses begin anew.
_SETTLED_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program to keep running, under a name for people."""

    name: str
    command: list[str]
    env: Mapping[str, str]


@dataclass(kw_only=True)
class _Running:
    program: Program
    process: subprocess.Popen[str] | None = None
    started_at: float = 0.0
    next_start_at: float = 0.0
    pause_s: float = _FIRST_PAUSE_S
    exits: int = 0
    last_lines: list[str] = field(default_factory=list)


class Supervisor:
    """Keeps programs running until it is told to stop.

    `say(name, line)` gets each line of output, from several threads. `on_change()` is called after
    a program was started or ended.
    """

    def __init__(
        self,
        *,
        cwd: Path,
        say: Callable[[str, str], None],
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._cwd = cwd
        self._say = say
        self._on_change = on_change
        self._running: dict[str, _Running] = {}
        self._guard = threading.RLock()
        self._stopping = threading.Event()
        # One thread starts every program, and lives as long as they do: the kernel ends a tethered
        # program when the thread that started it ends.
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    def start(self, program: Program) -> None:
        """Start a program, soon, and keep it running."""
        with self._guard:
            self._running[program.name] = _Running(program=program)
        if not self._thread.is_alive():
            self._thread.start()

    def pids(self) -> dict[str, int]:
        """Answer the process id of each program that runs now."""
        with self._guard:
            return {
                name: each.process.pid
                for name, each in self._running.items()
                if each.process is not None and each.process.poll() is None
            }

    def exits(self, name: str) -> int:
        """Answer how often a program ended without being told to."""
        with self._guard:
            return self._running[name].exits

    def last_lines(self, name: str) -> list[str]:
        """Answer the last lines that a program printed."""
        with self._guard:
            return list(self._running[name].last_lines)

    def stop(self, *, grace_s: float, last: tuple[str, ...] = ()) -> None:
        """Stop every program and what it started; those named in `last` after the others."""
        self._stopping.set()
        with self._guard:
            first = [each for name, each in self._running.items() if name not in last]
            then = [each for name, each in self._running.items() if name in last]
        for group in (first, then):
            self._stop_group(group, grace_s=grace_s)
        if self._thread.is_alive():
            self._thread.join()

    def kill(self) -> None:
        """Stop everything at once, without asking."""
        self._stopping.set()
        with self._guard:
            for each in self._running.values():
                _kill_group(each.process)

    def _watch(self) -> None:
        while not self._stopping.is_set() or self.pids():
            with self._guard:
                for each in self._running.values():
                    self._look_after(each)
            time.sleep(_POLL_S)

    def _look_after(self, each: _Running) -> None:
        now = time.monotonic()
        if each.process is None:
            if now >= each.next_start_at and not self._stopping.is_set():
                self._launch(each)
            return
        code = each.process.poll()
        if code is None:
            return
        # What it left behind would hold on to its port, or work on without anybody knowing.
        _kill_group(each.process)
        each.process = None
        if self._stopping.is_set():
            return
        each.exits += 1
        if now - each.started_at > _SETTLED_S:
            each.pause_s = _FIRST_PAUSE_S
        each.next_start_at = now + each.pause_s
        self._say(
            "stack",
            f"{each.program.name} ended ({_how(code)}); starting it again in {each.pause_s:g} s",
        )
        each.pause_s = min(each.pause_s * 2, _LONGEST_PAUSE_S)
        self._on_change()

    def _launch(self, each: _Running) -> None:
        each.started_at = time.monotonic()
        each.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-S", "-E", "-s", str(_TETHER), *each.program.command],
            cwd=self._cwd,
            env=dict(each.program.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        threading.Thread(target=self._relay, args=(each, each.process), daemon=True).start()
        self._on_change()

    def _relay(self, each: _Running, process: subprocess.Popen[str]) -> None:
        output = cast(IO[str], process.stdout)
        with output:
            for line in output:
                text = line.rstrip("\n")
                with self._guard:
                    each.last_lines = [*each.last_lines[-19:], text]
                self._say(each.program.name, text)

    def _stop_group(self, group: list[_Running], *, grace_s: float) -> None:
        processes = [each.process for each in group if each.process is not None]
        for process in processes:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            _kill_group(process)
            process.wait()


def _kill_group(process: subprocess.Popen[str] | None) -> None:
    """Kill a program and all that it started and that stayed in its group."""
    if process is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _how(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
