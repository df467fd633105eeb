"""Calls that are being held at this moment, by a hang or because they are slow."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass, field

from .answers import JsonObject


@dataclass
class Held:
    """A held call: what it is, since when, and for how long, in seconds."""

    call: JsonObject
    seconds: float
    executed: bool
    started: float = field(default_factory=time.monotonic)
    let_go: threading.Event = field(default_factory=threading.Event)


class Holds:
    """Holds calls; the control path can let go of them early, and stopping lets go of all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._held: dict[int, Held] = {}
        self._stopping = False

    def hold(self, call: JsonObject, seconds: float, *, executed: bool) -> bool:
        """Wait; false if the sandbox is stopping, so that nothing more should be done."""
        held = Held(call, seconds, executed)
        with self._lock:
            number = next(self._ids)
            self._held[number] = held
            if self._stopping:
                held.let_go.set()
        held.let_go.wait(seconds)
        with self._lock:
            del self._held[number]
            return not self._stopping

    def in_flight(self) -> list[JsonObject]:
        """What is held right now; `executed` says whether its effect has taken place."""
        now = time.monotonic()
        with self._lock:
            return [
                held.call
                | {
                    "executed": held.executed,
                    "held_for_s": round(now - held.started, 3),
                    "seconds": held.seconds,
                }
                for held in self._held.values()
            ]

    def let_go(self, *, key: str | None = None) -> int:
        """Let go of the calls with this key, or of all; says how many."""
        with self._lock:
            chosen = [h for h in self._held.values() if key in (None, h.call.get("key"))]
            for held in chosen:
                held.let_go.set()
            return len(chosen)

    def stop(self) -> None:
        """Let go of everything, now and later."""
        with self._lock:
            self._stopping = True
            for held in self._held.values():
                held.let_go.set()
