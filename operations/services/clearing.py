"""Clearing: a person takes a flag off, with a reason. It changes no status."""

from uuid import UUID

from django.db import transaction

from operations.domain.audit import Actor, ActorKind
from operations.domain.sentences import say
from operations.domain.statuses import Attention, Status
from operations.models import AuditEntry, Flag, Operation
from operations.services.claiming import refuse_others
from operations.services.engine import Engine
from operations.services.settling import lock, void_proposals
from operations.services.weighing import ClosingRefused, StaleView

#: What holds up sending until a person has looked at it.
_HOLDS_UP = (Attention.CONFIGURATION, Attention.DISPUTED)


class ClearingRefused(ClosingRefused):
    """This flag can't be cleared; nothing was changed. `field` names what to mend."""


@transaction.atomic
def clear_attention(
    *,
    engine: Engine,
    operation_id: UUID,
    attention: Attention,
    reason: str,
    revision: int,
    actor: Actor,
) -> Operation:
    """Take a flag off, with every fact that raised it. The facts stay on record.

    The same facts never raise it again; a new one does. An open operation that it held up goes on
    with its next check. Raises StaleView, ClearingRefused.
    """
    operation = lock(operation_id)
    if operation.revision != revision:
        raise StaleView(operation)
    now = engine.clock()
    if actor.kind is not ActorKind.PERSON:
        raise ClearingRefused(say("Only a person clears a flag."))
    refuse_others(operation, actor=actor, now=now)
    if attention not in operation.attention:
        raise ClearingRefused(say("This flag is not set any more."))
    if not reason.strip():
        raise ClearingRefused(say("Say why the flag can be cleared."), "reason")
    before = operation.snapshot()
    standing = Flag.objects.filter(
        operation=operation, attention=attention, cleared_at__isnull=True
    )
    facts = sorted(standing.values_list("fact", flat=True))
    standing.update(
        cleared_at=now,
        cleared_by=actor.id,
        cleared_by_name=actor.name,
        clear_reason=reason.strip(),
    )
    resumes = attention in _HOLDS_UP and operation.status == Status.OPEN
    operation.change(
        now=now,
        attention=[flag for flag in operation.attention if flag != attention],
        next_check_at=now if resumes else operation.next_check_at,
    )
    void_proposals(operation, now)
    AuditEntry.append(
        operation_id=operation.pk,
        actor=actor,
        action="attention_cleared",
        now=now,
        before=before | {"facts": facts},
        after=operation.snapshot(),
        reason=reason.strip(),
    )
    return operation
