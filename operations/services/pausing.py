"""Pausing: people stop all sending on an account, and let it go on again. Look-ups go on."""

from django.db import transaction

from operations.domain.audit import Actor
from operations.domain.sentences import Outside, Refusal, say
from operations.domain.statuses import Status
from operations.models import Account, AuditEntry, Operation
from operations.services.engine import Engine


class PauseRefused(Refusal):
    """Sending can't be paused or resumed that way; nothing was changed."""


@transaction.atomic
def pause_sending(*, engine: Engine, account: Account, reason: str, actor: Actor) -> Account:
    """Stop sending. What is in flight ends by itself; new operations are opened and wait.

    Raises PauseRefused.
    """
    account = Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    if account.paused_at is not None:
        raise PauseRefused(
            say("Sending on {account} is paused already.", account=Outside(account.name))
        )
    if not reason.strip():
        raise PauseRefused(say("Say why sending is paused."))
    account.paused_at = engine.clock()
    account.paused_by = actor.name[:255]
    account.pause_reason = reason.strip()[:500]
    _save(engine, account, "sending_paused", reason, actor)
    return account


@transaction.atomic
def resume_sending(*, engine: Engine, account: Account, reason: str, actor: Actor) -> Account:
    """Let sending go on. What waited is checked at once. Raises PauseRefused."""
    account = Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    if account.paused_at is None:
        raise PauseRefused(
            say("Sending on {account} is not paused.", account=Outside(account.name))
        )
    if not reason.strip():
        raise PauseRefused(say("Say why sending can go on."))
    account.paused_at = None
    account.paused_by = account.pause_reason = ""
    _save(engine, account, "sending_resumed", reason, actor)
    now = engine.clock()
    waiting = Operation.objects.select_for_update(no_key=True, of=("self",)).filter(
        account=account, status=Status.OPEN
    )
    # Locked by id, as everywhere: two that lock several operations never wait for each other.
    for operation in waiting.order_by("pk"):
        operation.change(now=now, next_check_at=now)
    return account


def _save(engine: Engine, account: Account, action: str, reason: str, actor: Actor) -> None:
    account.save(update_fields=["paused_at", "paused_by", "pause_reason"])
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action=action,
        now=engine.clock(),
        before={"account": account.name, "paused": account.paused_at is None},
        after={"account": account.name, "paused": account.paused_at is not None},
        reason=reason.strip(),
    )
