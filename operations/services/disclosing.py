"""Disclosing: who looked at what was recorded raw, and who took what away, is written down, too."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from operations.domain.audit import Actor
from operations.models import AuditEntry
from operations.services.engine import Engine


@transaction.atomic
def note_disclosure(
    *,
    engine: Engine,
    actor: Actor,
    action: str,
    what: Mapping[str, Any],
    operation_id: UUID | None = None,
) -> None:
    """Write down that somebody read or took something. It changes no operation.

    So it stands in the chain of what belongs to none, with the operation's id in it.
    """
    named = {"operation": str(operation_id)} if operation_id else {}
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action=action,
        now=engine.clock(),
        after={**named, **what},
    )
