"""What an event of the timeline looks like."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from operations.domain.sentences import Sentence


class EventKind(StrEnum):
    """What an event of the timeline is; the page draws an icon for it."""

    REQUEST = "agent"
    ATTEMPT = "send"
    LOOKUP = "search"
    WEBHOOK = "webhook"
    PERSON = "person"
    STATUS = "unknown"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Tone(StrEnum):
    """How an event's mark is drawn."""

    PLAIN = ""
    BAD = "bad"
    GOOD = "good"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class TimelineEvent:
    """One thing that happened. `outside` is text that others wrote; `raw` what is kept of it.

    `tags` are short facts; `meta` ids and durations that came from outside.
    """

    at: datetime
    kind: EventKind
    anchor: str
    head: Sentence
    text: Sentence | None = None
    outside: str = ""
    tone: Tone = Tone.PLAIN
    tags: tuple[tuple[str, Tone], ...] = ()
    meta: tuple[str, ...] = ()
    raw: dict[str, Any] = field(default_factory=dict)
