"""Puts the parts of one sandbox together and brings back its state from the journal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .answers import JsonObject
from .delivery import DEFAULT_BASE_DELAY_S, Deliverer
from .events import EventLog
from .faults import FaultTable
from .holding import Holds
from .idempotency import DEFAULT_WINDOW_S, Keys
from .ledger import Ledger
from .promises import promises_of
from .sends import SendLog
from .state import Clock, Guard, Journal
from .webhooks import Address, Addresses, Webhooks

DEFAULT_SIGNING = "whsec_sandbox"


@dataclass(frozen=True)
class Settings:
    """How a sandbox is set up. Windows and delays in seconds."""

    webhook_url: str | None = None
    webhook_secret: str = DEFAULT_SIGNING
    state: Path | None = None
    key_window_s: float = DEFAULT_WINDOW_S
    account_webhooks: tuple[tuple[str, str], ...] = ()
    webhook_base_delay_s: float = DEFAULT_BASE_DELAY_S
    contract: str = "stripe"


class Assembly:
    """Everything that one sandbox consists of, apart from HTTP."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.promises = promises_of(settings.contract)
        self.clock = Clock()
        self.journal = Journal(settings.state)
        self.guard = Guard(self.journal)
        record = self.journal.record
        self.ledger = Ledger(self.clock, record)
        window_s = settings.key_window_s if self.promises.states_window else math.inf
        self.keys = Keys(self.clock, window_s, record)
        self.events = EventLog(self.clock, record)
        self.sends = SendLog(self.clock, record)
        self.faults = FaultTable()
        self.holds = Holds()
        self.addresses = Addresses(None)
        self.set_address(settings.webhook_url, None)
        for account, url in settings.account_webhooks:
            self.set_address(url, account)
        self.deliverer = Deliverer(
            self.guard, self.events, self.addresses, settings.webhook_base_delay_s
        )
        self.webhooks = Webhooks(self.events, self.addresses, self.deliverer.send)
        self.events.announce = self.webhooks.announce

    def start(self) -> None:
        """Bring back what the journal holds, and deliver what had not been delivered."""
        with self.guard.changing():
            for kind, payload in self.journal.read():
                self._restore(kind, payload)
            self.sends.mark_interrupted()
            self.journal.rewrite(self._snapshot())
            self.webhooks.resume()
        self.deliverer.start()

    def stop(self) -> None:
        """Let go of held calls and stop delivering."""
        self.holds.stop()
        self.deliverer.stop()
        with self.guard.reading():
            self.journal.close()

    def set_address(self, url: str | None, account: str | None, secret: str | None = None) -> None:
        """Send events, or those of one connected account, to `url`; None sends them nowhere."""
        address = Address(url, secret or self.settings.webhook_secret) if url else None
        if account is None:
            self.addresses.default = address
        elif address is None:
            self.addresses.of_account.pop(account, None)
        else:
            self.addresses.of_account[account] = address

    def advance_clock(self, seconds: float) -> float:
        """Move the sandbox's clock; gives back its UTC seconds."""
        self.clock.offset_s += seconds
        self.journal.record("clock", {"offset_s": self.clock.offset_s})
        return self.clock.now()

    def reset(self) -> None:
        """Forget everything but the addresses."""
        self.holds.let_go()
        for part in (
            self.ledger, self.keys, self.events, self.sends, self.faults, self.webhooks,
            self.deliverer,
        ):  # fmt: skip
            part.clear()
        self.clock.offset_s = 0.0
        self.journal.rewrite([])

    def _restore(self, kind: str, payload: JsonObject) -> None:
        if kind == "clock":
            self.clock.offset_s = payload["offset_s"]
            return
        parts = (self.ledger, self.events, self.sends, self.keys)
        if not any(part.restore(kind, payload) for part in parts):
            raise ValueError(f"the journal holds an entry of an unknown kind: {kind}")

    def _snapshot(self) -> Iterator[tuple[str, JsonObject]]:
        yield "clock", {"offset_s": self.clock.offset_s}
        for part in (self.ledger, self.events, self.sends, self.keys):
            yield from part.snapshot()
