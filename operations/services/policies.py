"""Policies: an administrator turns on, or off, what is not done by default."""

from django.db import connection, transaction

from operations.domain.audit import Actor
from operations.domain.sentences import Refusal, say
from operations.models import AuditEntry, Policy, PolicyName
from operations.services.engine import Engine


class PolicyRefused(Refusal):
    """This policy can't be set so; nothing was changed."""


@transaction.atomic
def set_policy(
    *, engine: Engine, name: PolicyName, enabled: bool, reason: str, actor: Actor
) -> Policy:
    """Turn a policy on or off, with a reason, audited. Raises PolicyRefused."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"policy-{name}"])
    before = Policy.is_on(name)
    if not reason.strip():
        raise PolicyRefused(say("Say why."))
    if before == enabled:
        raise PolicyRefused(say("It is on already.") if enabled else say("It is off already."))
    now = engine.clock()
    row = Policy.objects.create(
        name=name,
        enabled=enabled,
        reason=reason.strip(),
        set_by=actor.id,
        set_by_name=actor.name,
        set_at=now,
    )
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action="policy_set",
        now=now,
        before={"policy": str(name), "enabled": before},
        after={"policy": str(name), "enabled": enabled},
        reason=reason.strip(),
    )
    return row
