"""What the explanation of an operation is made from: its evidence, without Django."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from operations.domain.answers import AnswerKind
from operations.domain.classify import Doubt, Outcome
from operations.domain.money import Money
from operations.domain.statuses import Attention, Status, UnknownReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One attempt. `outcome` is None while its answer is awaited."""

    number: int
    at: datetime
    outcome: Outcome | None
    doubt: Doubt = Doubt.NONE
    kind: AnswerKind | None = None
    http_status: int | None = None
    refund_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp:
    """One look-up. `result` is found, absent, unproven, incomplete or unreadable.

    Unproven is an absence from a list that does not show every refund.
    """

    number: int
    at: datetime
    result: str
    refund_id: str = ""
    others: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A webhook about a refund of this operation."""

    at: datetime
    refund_id: str
    refund_status: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A person's decision on the operation."""

    at: datetime
    by: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Everything that the sentences are made from. Each sequence is oldest first, times in UTC."""

    provider: str
    money: Money
    status: Status
    now: datetime
    unknown_reason: UnknownReason | None = None
    attention: frozenset[Attention] = frozenset()
    provider_object_id: str = ""
    failure_message: str = ""
    key_window_closes_at: datetime | None = None
    sends: Sequence[Sent] = ()
    lookups: Sequence[LookedUp] = ()
    events: Sequence[Told] = ()
    statements: Sequence[Stated] = ()
    #: Where the timeline shows what raised a flag.
    raised_by: Mapping[Attention, str] = field(default_factory=dict)

    @property
    def window_closed(self) -> bool:
        """Whether the key can't be relied on any more."""
        closes = self.key_window_closes_at
        return closes is not None and closes <= self.now
