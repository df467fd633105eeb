"""What was learned, before anything is made of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from operations.domain.audit import Actor
from operations.models import Attempt, EvidenceSource


@dataclass(frozen=True, kw_only=True)
class Learned:
    """A piece of evidence about to be written, and who brought it. Times in UTC.

    `observed_at` is the provider's time for what its events say, ours for everything else.
    `is_borne_out`: whether the provider itself told of the same refund, if that was looked up.
    """

    source: EvidenceSource
    summary: str
    actor: Actor
    observed_at: datetime
    attempt: Attempt | None = None
    event_pk: int | None = None
    is_borne_out: bool | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def told_by(self) -> str:
        """The id of the event or the attempt, or the name of who looked."""
        return str(self.attempt.pk) if self.attempt else self.actor.id
