"""Keys that callers of our API hold."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db import transaction
from django.db.models import Q

from operations.domain.audit import Actor
from operations.domain.sentences import Refusal, say
from operations.models import Account, ApiKey, AuditEntry
from operations.services.engine import Engine

_PREFIX = "rck_"
#: How exact `last_used_at` is, in seconds: it is not written more often.
_LAST_USED_EXACT_S = 60


@dataclass(frozen=True, kw_only=True)
class KeyScope:
    """What a key may do, for good: at these accounts (empty: all), until then (None: for ever)."""

    accounts: Sequence[Account] = ()
    may_write: bool = True
    expires_at: datetime | None = None


@transaction.atomic
def create_api_key(
    *, engine: Engine, name: str, actor: Actor, scope: KeyScope | None = None
) -> tuple[ApiKey, str]:
    """Make a key. The secret is returned once and kept only as its SHA-256.

    Raises KeyRefused when it would have expired already.
    """
    scope = scope or KeyScope()
    secret = _PREFIX + secrets.token_urlsafe(32)
    now = engine.clock()
    if scope.expires_at is not None and scope.expires_at <= now:
        raise KeyRefused(say("Say a day that is still to come."))
    key = ApiKey.objects.create(
        name=name,
        prefix=secret[:10],
        secret_hash=_hash(secret),
        created_at=now,
        account_ids=sorted(account.pk for account in scope.accounts),
        may_write=scope.may_write,
        expires_at=scope.expires_at,
    )
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action="api_key_created",
        now=now,
        after={
            "name": name,
            "prefix": key.prefix,
            "accounts": sorted(account.name for account in scope.accounts),
            "may_write": scope.may_write,
            "expires_at": scope.expires_at.isoformat() if scope.expires_at else None,
        },
    )
    return key, secret


class KeyRefused(Refusal):
    """The key can't be made or revoked that way; nothing was changed."""


@transaction.atomic
def revoke_api_key(*, engine: Engine, key_id: int, reason: str, actor: Actor) -> ApiKey:
    """End a key, for good: it opens nothing any more, and its subscriptions end with it.

    Raises KeyRefused, ApiKey.DoesNotExist.
    """
    key = ApiKey.objects.select_for_update(no_key=True).get(pk=key_id)
    if key.revoked_at is not None:
        raise KeyRefused(say("This key was revoked before."))
    if not reason.strip():
        raise KeyRefused(say("Say why the key is revoked."))
    key.revoked_at = engine.clock()
    key.save(update_fields=["revoked_at"])
    named = {"name": key.name, "prefix": key.prefix}
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action="api_key_revoked",
        now=key.revoked_at,
        before={**named, "revoked": False},
        after={**named, "revoked": True},
        reason=reason.strip(),
    )
    return key


def find_api_key(*, engine: Engine, secret: str) -> ApiKey | None:
    """The key that this secret opens, or None. Its last use is written down, once a minute."""
    key = ApiKey.objects.filter(secret_hash=_hash(secret), revoked_at__isnull=True).first()
    now = engine.clock()
    if key is None or key.has_ended(now):
        return None
    stale = now - timedelta(seconds=_LAST_USED_EXACT_S)
    if key.last_used_at is None or key.last_used_at < stale:
        ApiKey.objects.filter(pk=key.pk).filter(
            Q(last_used_at__isnull=True) | Q(last_used_at__lt=stale)
        ).update(last_used_at=now)
    return key


def _hash(secret: str) -> str:
    """A plain SHA-256 is enough: the secret has 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def end_of_day(text: str) -> datetime:
    """The end of a day in UTC, such as "2027-01-31". Raises ValueError in words."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ValueError(f'Say a day as YYYY-MM-DD, not "{text}".') from None
    return datetime.combine(day, time.max, UTC)
