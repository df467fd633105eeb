"""Everything that is recorded of one operation, as JSON: what a bundle holds."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from operations.domain.masking import masked
from operations.models import AuditEntry
from operations.queries.dossier import Dossier

#: Raw bytes stand beside what was read of them; a form's token is no fact.
_LEFT_OUT = {"raw", "form_token"}


def record(row: models.Model | None) -> dict[str, Any] | None:
    """All columns of a row, without secrets."""
    if row is None:
        return None
    deferred = row.get_deferred_fields()
    return {
        field.attname: masked(getattr(row, field.attname))
        for field in row._meta.concrete_fields
        if field.attname not in _LEFT_OUT and field.attname not in deferred
    }


def records(dossier: Dossier) -> dict[str, Any]:
    """The operation and what belongs to it, each list oldest first."""
    operation = dossier.operation
    keys = {row.api_key_id: row.api_key for row in dossier.requests if row.api_key}
    return {
        "operation": record(operation),
        "account": record(operation.account),
        "payment": record(operation.payment),
        "callers": [
            {"id": key.pk, "name": key.name, "prefix": key.prefix} for key in keys.values()
        ],
        "requests": _each(dossier.requests),
        "attempts": _each(dossier.attempts),
        "evidence": _each(dossier.evidence),
        "events": _each(dossier.events),
        "refunds_of_the_payment": _each(dossier.refunds),
        "other_operations_of_the_payment": [str(row.pk) for row in dossier.siblings],
        "proposals": _each(dossier.proposals),
        "flags": _each(dossier.flags),
        "notes": _each(dossier.notes),
    }


def audit_records(entries: Iterable[AuditEntry]) -> list[dict[str, Any]]:
    """Each entry as it was hashed. One that holds a secret is masked, and says so."""
    return [_audit_record(entry) for entry in entries]


def as_json(value: Any) -> bytes:
    """JSON for people and programs: UTF-8, in one order."""
    text = json.dumps(value, cls=_Exact, indent=1, sort_keys=True, ensure_ascii=False)
    return text.encode(errors="replace") + b"\n"


class _Exact(DjangoJSONEncoder):
    """Moments are written as they were hashed, to the microsecond."""

    def default(self, value: Any) -> Any:
        return value.isoformat() if hasattr(value, "isoformat") else super().default(value)


def _each(rows: Iterable[models.Model]) -> list[dict[str, Any] | None]:
    return [record(row) for row in rows]


def _audit_record(entry: AuditEntry) -> dict[str, Any]:
    said: Mapping[str, Any] = {
        "actor": {
            "kind": entry.actor_kind,
            "id": entry.actor_id,
            "name": entry.actor_name,
            "address": entry.actor_address,
        },
        "before": entry.before,
        "after": entry.after,
        "reason": entry.reason,
    }
    shown = masked(said)
    return {
        **shown,
        "chain": entry.chain,
        "number": entry.number,
        "at": entry.at.isoformat(),
        "action": entry.action,
        "evidence": entry.evidence_id,
        "previous_hash": entry.previous_hash,
        "entry_hash": entry.entry_hash,
        "masked": shown != said,
    }
