"""What the provider of a simulated world keeps about sends, keys and refunds."""

import json
from dataclasses import dataclass
from typing import Any

from operations.domain.answers import Answer
from operations.sandbox.ledger import Refund


@dataclass
class Send:
    """One arrival of `POST /v1/refunds`, at true time `time`."""

    time: float
    key: str
    operation: str
    parameters: dict[str, Any]
    outcome: str = ""
    status: int | None = None

    @property
    def fingerprint(self) -> str:
        """Equal for equal parameters, in whatever order they come."""
        return json.dumps(self.parameters, sort_keys=True)


@dataclass
class Flight:
    """One call of the client from its start to its end, whether or not it arrived."""

    key: str
    payment: str
    began: float
    offset_s: float
    ended: float | None = None


@dataclass
class SavedKey:
    """A key, what it was first used for, and the first answer once there is one."""

    fingerprint: str
    first_used: float
    answer: Answer | None = None


@dataclass
class Made:
    """A refund with what only the provider knows: the key that made it, and its first news."""

    refund: Refund
    key: str
    made_at: float
    succeeded_once: bool = False
