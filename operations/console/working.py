"""Who works on an operation and who is looking at it, as its pages show it."""

from typing import Any
from uuid import UUID

from operations.console.permissions import ConsoleRequest
from operations.domain.claims import HEARTBEAT_S
from operations.queries.at_work import at_work
from operations.services.engine import default_engine


def work_context(request: ConsoleRequest, operation_id: UUID) -> dict[str, Any]:
    """Who works on it and who is looking, for `_claim.html`."""
    person = str(request.user.pk)
    work = at_work(operation_id, person=person, now=default_engine().clock())
    return {
        "operation_id": operation_id,
        "work": work,
        "claim_is_mine": work.holder == person,
        "heartbeat_s": HEARTBEAT_S,
    }
