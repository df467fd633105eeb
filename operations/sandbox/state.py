"""The sandbox's clock, its lock, and the journal that lets its state survive a restart.

The journal is a file of JSON lines, one for each object that was put; the last line of an object
wins. A change is written and flushed to the operating system before it is answered, so it survives
a kill of the process (not a power cut: nothing is fsynced).
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from .answers import JsonObject

Record = Callable[[str, JsonObject], None]


class JournalUnreadableError(Exception):
    """The state file holds a line, other than a torn last one, that is not a journal entry."""


class Clock:
    """Wall time in UTC seconds plus an offset that the control path can advance."""

    def __init__(self) -> None:
        self.offset_s = 0.0

    def now(self) -> float:
        """Seconds since the epoch on the sandbox's clock."""
        return time.time() + self.offset_s

    def seconds(self) -> int:
        """The same in whole seconds, as Stripe's `created`."""
        return int(self.now())


class Journal:
    """Collects what changed and writes it in one go. Without a path it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file: IO[str] | None = None
        self._waiting: list[tuple[str, JsonObject]] = []

    def read(self) -> Iterator[tuple[str, JsonObject]]:
        """The entries of the file in the order in which they were written."""
        if self.path is None or not self.path.exists():
            return
        lines = self.path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                kind, payload = json.loads(line)
            except ValueError as error:
                if number == len(lines):
                    return
                raise JournalUnreadableError(
                    f"line {number} of {self.path} is not a journal entry"
                ) from error
            yield kind, payload

    def rewrite(self, entries: Iterable[tuple[str, JsonObject]]) -> None:
        """Replace the file, atomically, with `entries`, and go on appending to it."""
        self._waiting.clear()
        if self.path is None:
            return
        self.close()
        fresh = self.path.with_name(self.path.name + ".new")
        with fresh.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries)
        os.replace(fresh, self.path)
        self._file = self.path.open("a", encoding="utf-8")

    def record(self, kind: str, payload: JsonObject) -> None:
        """Note one changed object; it is written by the next `commit`."""
        if self.path is not None:
            self._waiting.append((kind, payload))

    def commit(self) -> None:
        """Write and flush what is noted."""
        if self._waiting and self._file is not None:
            self._file.write("".join(json.dumps(entry) + "\n" for entry in self._waiting))
            self._file.flush()
        self._waiting.clear()

    def close(self) -> None:
        """Close the file; nothing more is written."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Guard:
    """The one lock around all state. Leaving `changing` writes the journal first."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock, and write what changed before letting go of it."""
        with self._lock:
            try:
                yield
            finally:
                self.journal.commit()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock without writing."""
        with self._lock:
            yield
