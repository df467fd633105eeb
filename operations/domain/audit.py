"""The audit chain: who did what, and a hash that ties each entry to the one before."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

#: What the first entry of a chain is tied to.
CHAIN_START = "0" * 64


class ActorKind(StrEnum):
    """Who or what acted; never a default person."""

    PERSON = "person"
    API_KEY = "api_key"
    WEBHOOK = "webhook"
    JOB = "job"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acted and from where. `name` stays readable after the person has left."""

    kind: ActorKind
    id: str
    name: str
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainedEntry:
    """The fields of an audit entry that its hash covers. `at` in UTC."""

    chain: str
    number: int
    at: datetime
    actor: Actor
    action: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    reason: str
    evidence_id: str
    previous_hash: str

    def digest(self) -> str:
        """SHA-256 (hex) over the canonical JSON of all fields and the hash before."""
        fields = {
            "action": self.action,
            "actor": [
                self.actor.kind,
                self.actor.id,
                self.actor.name,
                self.actor.address,
            ],
            "after": dict(self.after),
            "at": self.at.isoformat(),
            "before": dict(self.before),
            "chain": self.chain,
            "evidence": self.evidence_id,
            "number": self.number,
            "previous": self.previous_hash,
            "reason": self.reason,
        }
        return hashlib.sha256(canonical(fields)).hexdigest()


def canonical(fields: Mapping[str, Any]) -> bytes:
    """The one way in which these fields are written down to be hashed or signed."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()
