"""The audit chain: who did what, and a hash that ties each entry to the one before."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson

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
    """The one way in which these fields are written down to be hashed or signed.

    What `json` writes with sorted names, without blanks and in UTF-8. What hashes cover is written
    by the faster `orjson` where both write the same bytes, which they do not for broken numbers.
    """
    if _is_plain(fields):
        try:
            return orjson.dumps(fields, option=_SORTED)
        except TypeError:
            pass  # Numbers beyond 64 bits, and text that is none.
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


_SORTED = orjson.OPT_SORT_KEYS
_PLAIN = frozenset([str, int, bool, type(None)])


def _is_plain(value: Any) -> bool:
    """Whether it is made of texts, whole numbers, truths and nothing alone."""
    kind = type(value)
    if kind is dict:
        value = value.values()  # Names that are no texts are refused by `orjson`.
    elif kind is not list:
        return kind in _PLAIN or isinstance(value, StrEnum)
    # A loop, which is twice as fast as a generator.
    for inner in value:  # noqa: SIM110
        if type(inner) not in _PLAIN and not _is_plain(inner):
            return False
    return True
