"""What is recorded about signing in: in the chain of what belongs to no operation."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from operations.domain.audit import Actor
from operations.models import AuditEntry
from operations.services.engine import Engine


@transaction.atomic
def record_sign_in(
    *, engine: Engine, action: str, actor: Actor, facts: Mapping[str, Any] | None = None
) -> None:
    """One entry: that somebody signed in or out, failed to, or changed what they sign in with."""
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action=action,
        now=engine.clock(),
        after=dict(facts or {}),
    )
