"""What is new about an operation since a page was made, and who decided it last."""

from dataclasses import dataclass
from datetime import datetime

from operations.domain.sentences import Outside, Sentence, say
from operations.domain.statuses import SETTLED
from operations.models import AuditEntry, Evidence
from operations.queries.dossier import Dossier
from operations.queries.evidence import in_words

_DECIDED = ("closed_succeeded", "closed_failed", "reopened")


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing that happened since."""

    at: datetime
    who: str
    text: Sentence


@dataclass(frozen=True, kw_only=True)
class ClosingDecision:
    """A closing by a person: the audit entry and the statement it rests on."""

    entry: AuditEntry
    evidence: Evidence


def changes_since(dossier: Dossier, seen: str) -> list[Change]:
    """Evidence and audit entries that a page with this `seen` did not show, oldest first."""
    audit_seen, evidence_seen = (int(part) for part in seen.split("."))
    fresh = [row for row in dossier.evidence if row.pk > evidence_seen]
    told = {str(row.pk) for row in fresh}
    settled = dossier.operation.status in SETTLED
    changes = [
        Change(at=row.recorded_at, who=row.actor_name, text=in_words(row, settled=settled))
        for row in fresh
    ]
    changes += [
        Change(
            at=row.at,
            who=row.actor_name,
            text=say("{reason}", reason=Outside(row.reason or row.action)),
        )
        for row in dossier.audit
        if row.number > audit_seen and row.evidence_id not in told
    ]
    return sorted(changes, key=lambda change: change.at)


def newest_decision(dossier: Dossier, number: int | None = None) -> ClosingDecision | None:
    """The last decision by a person, or the one with this audit number; None when there is none."""
    decided = (row for row in reversed(dossier.audit) if row.action in _DECIDED)
    entry = next((row for row in decided if number in (None, row.number)), None)
    if entry is None:
        return None
    evidence = next((row for row in dossier.evidence if str(row.pk) == entry.evidence_id), None)
    return ClosingDecision(entry=entry, evidence=evidence) if evidence else None
