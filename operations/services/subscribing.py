"""Subscribing: who is told what, and what people do about deliveries. Every change is audited."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction

from operations.domain.addresses import AddressRefused
from operations.domain.audit import Actor, ActorKind
from operations.domain.identity import uuid7
from operations.domain.notices import NoticeType
from operations.domain.sentences import Refusal, say
from operations.domain.signing import SECRET_BYTES, secret_of
from operations.models import (
    Account,
    ApiKey,
    AuditEntry,
    Delivery,
    DeliveryState,
    DeliveryTry,
    Subscription,
)
from operations.services.engine import Engine
from operations.services.posting import checked
from operations.services.trying import disable_row

#: How long the old secret goes on signing beside a new one, unless asked otherwise. Seconds.
KEEP_OLD_SECRET_S = 86_400
_BATCH = 5_000
#: Whose disabling a key may undo: its own kind's, and the relay's.
_KEYS_MAY_ENABLE = frozenset([str(ActorKind.API_KEY), str(ActorKind.JOB)])


class SubscriptionRefused(Refusal):
    """This can't be done; nothing was changed. `field` names what to mend, "" for none."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked for. `types` empty: all; `account` none: all accounts."""

    address: str
    name: str = ""
    types: Sequence[NoticeType] = ()
    account: Account | None = None


def subscribe(
    *, engine: Engine, wanted: Wanted, actor: Actor, api_key: ApiKey | None = None
) -> Subscription:
    """Tell this address from now on. Its secret is shown by whoever called, once.

    Resolves the address, so no transaction may be open. Raises SubscriptionRefused.
    """
    try:
        checked(wanted.address, policy=engine.notices)
    except AddressRefused as refusal:
        raise SubscriptionRefused(refusal.sentence, "address") from None
    now = engine.clock()
    subscription = Subscription(
        id=uuid7(now),
        name=wanted.name,
        address=wanted.address,
        types=sorted({str(kind) for kind in wanted.types}),
        account=wanted.account,
        api_key=api_key,
        created_at=now,
        created_by=actor.name,
        secret=_new_secret(),
    )
    with transaction.atomic():
        subscription.save(force_insert=True)
        _audit(engine, actor, "subscription_created", subscription)
    return subscription


@transaction.atomic
def roll_secret(
    *,
    engine: Engine,
    subscription_id: UUID,
    actor: Actor,
    keep_old_s: int = KEEP_OLD_SECRET_S,
) -> Subscription:
    """Make a new secret. The old one signs beside it for `keep_old_s`; 0: it ends at once."""
    subscription = _lock(subscription_id)
    subscription.previous_secret = subscription.secret if keep_old_s else ""
    subscription.previous_secret_until = (
        engine.clock() + timedelta(seconds=keep_old_s) if keep_old_s else None
    )
    subscription.secret = _new_secret()
    subscription.save(update_fields=["secret", "previous_secret", "previous_secret_until"])
    _audit(engine, actor, "subscription_secret_rolled", subscription, keep_old_s=keep_old_s)
    return subscription


@transaction.atomic
def disable(
    *, engine: Engine, subscription_id: UUID, actor: Actor, reason: str = ""
) -> Subscription:
    """Tell it nothing more. What waits is kept. Harmless when done twice.

    A person's decision stands over a key's and the relay's.
    """
    subscription = _lock(subscription_id)
    overrules = actor.kind == ActorKind.PERSON and subscription.disabled_by in _KEYS_MAY_ENABLE
    if subscription.disabled_at is None or overrules:
        why = reason.strip()[:400] or "No reason was given."
        disable_row(subscription, reason=f"{actor.name}: {why}"[:500], by=actor, now=engine.clock())
        _audit(engine, actor, "subscription_disabled", subscription, reason=why)
    return subscription


@transaction.atomic
def enable(*, engine: Engine, subscription_id: UUID, actor: Actor) -> Subscription:
    """Tell it again, what still waits first. Harmless when done twice.

    Raises SubscriptionRefused: a key may not undo what a person decided.
    """
    subscription = _lock(subscription_id)
    if subscription.disabled_at is not None:
        if actor.kind == ActorKind.API_KEY and subscription.disabled_by not in _KEYS_MAY_ENABLE:
            raise SubscriptionRefused(say("A person disabled it, and only a person can enable it."))
        before = subscription.disabled_reason
        subscription.disabled_at = None
        subscription.disabled_reason = ""
        subscription.disabled_by = ""
        subscription.failures = 0
        subscription.failing_since = None
        subscription.resume_at = None
        subscription.save()
        waiting = Delivery.objects.filter(subscription=subscription, state=DeliveryState.WAITING)
        waiting.update(next_try_at=engine.clock())
        _audit(engine, actor, "subscription_enabled", subscription, reason=before)
    return subscription


@transaction.atomic
def send_again(*, engine: Engine, delivery_id: int, actor: Actor) -> Delivery:
    """Let a notice go out once more, under its id; one that waits is tried now.

    The retry schedule begins anew. Raises SubscriptionRefused.
    """
    found = Delivery.objects.only("subscription_id").get(pk=delivery_id)
    subscription = _lock(found.subscription_id)
    if subscription.disabled_at is not None:
        raise SubscriptionRefused(say("The subscription is disabled. Enable it first."))
    if subscription.key_has_ended(engine.clock()):
        raise SubscriptionRefused(
            say("The API key that made the subscription was revoked or has expired.")
        )
    delivery = Delivery.objects.select_for_update(no_key=True).get(pk=delivery_id)
    before = delivery.state
    delivery.state = DeliveryState.WAITING
    delivery.ended_at = None
    delivery.next_try_at = engine.clock()
    delivery.round_began = delivery.tries
    delivery.save(update_fields=["state", "ended_at", "next_try_at", "round_began"])
    if subscription.resume_at is not None:
        subscription.resume_at = None
        subscription.save(update_fields=["resume_at"])
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action="notice_sent_again",
        now=engine.clock(),
        before={"state": str(before)},
        after={
            "message": delivery.message_id,
            "operation": str(delivery.operation_id),
            "subscription": str(subscription.pk),
        },
    )
    return delivery


@transaction.atomic
def tidy_notices(*, engine: Engine) -> int:
    """Remove deliveries that ended long ago, a batch a call, and secrets that have ended.

    What waits for a subscription that stayed disabled as long is given up. Returns how many rows
    were removed.
    """
    now = engine.clock()
    before = now - timedelta(seconds=engine.notices.retention_s)
    Subscription.objects.filter(previous_secret_until__lte=now).update(
        previous_secret="", previous_secret_until=None
    )
    Delivery.objects.filter(
        state=DeliveryState.WAITING, subscription__disabled_at__lt=before, occurred_at__lt=before
    ).update(state=DeliveryState.FAILED, ended_at=now, claimed_until=None)
    old = list(
        Delivery.objects.exclude(state=DeliveryState.WAITING)
        .filter(ended_at__lt=before)
        .order_by("ended_at")
        .values_list("pk", flat=True)[:_BATCH]
    )
    DeliveryTry.objects.filter(delivery__in=old).delete()
    return Delivery.objects.filter(pk__in=old).exclude(state=DeliveryState.WAITING).delete()[0]


def _lock(subscription_id: UUID) -> Subscription:
    return Subscription.objects.select_for_update(no_key=True).get(pk=subscription_id)


def _new_secret() -> str:
    return secret_of(secrets.token_bytes(SECRET_BYTES))


def _audit(
    engine: Engine,
    actor: Actor,
    action: str,
    subscription: Subscription,
    *,
    reason: str = "",
    **more: int,
) -> None:
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action=action,
        now=engine.clock(),
        after={
            "subscription": str(subscription.pk),
            "address": subscription.address,
            "types": list(subscription.types),
            "account": str(subscription.account or ""),
            **more,
        },
        reason=reason,
    )
