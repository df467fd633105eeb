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
    `bulk_run`: the run of many that it is a part of.
    """

    source: EvidenceSource
    summary: str
    actor: Actor
    observed_at: datetime
    attempt: Attempt | None = None
    event_pk: int | None = None
    is_borne_out: bool | None = None
    bulk_run: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def part_of(self) -> dict[str, Any]:
        """What an audit entry says of the run of many, if there is one."""
        return {} if self.bulk_run is None else {"bulk_run": self.bulk_run}

    @property
    def told_by(self) -> str:
        """The id of the event or the attempt, or the name of who looked."""
        return str(self.attempt.pk) if self.attempt else self.actor.id
