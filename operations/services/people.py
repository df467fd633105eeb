"""People: who they are, which roles they have where, and whether they may come in at all."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import Group, User
from django.db import transaction

from operations.domain.access import Role
from operations.domain.audit import Actor
from operations.domain.sentences import Refusal, say
from operations.models import Account, AuditEntry, Grant
from operations.services.engine import Engine


class PersonRefused(Refusal):
    """This can't be done with a person; nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """A role everywhere or, with `account`, at that account."""

    role: Role
    account: Account | None = None


@transaction.atomic
def add_person(
    *, engine: Engine, name: str, first_name: str, last_name: str, reason: str, actor: Actor
) -> tuple[User, str]:
    """Somebody new, without a role. The password is returned once. Raises PersonRefused."""
    if User.objects.filter(username=name).exists():
        raise PersonRefused(say("There is somebody with this name already."))
    password = secrets.token_urlsafe(15)
    user = User.objects.create_user(
        username=name, password=password, first_name=first_name, last_name=last_name
    )
    _write(engine, actor, user, "person_added", reason, before={}, after=standing(user))
    return user, password


def give_role(*, engine: Engine, user_id: int, held: Held, reason: str, actor: Actor) -> User:
    """A role more. Raises PersonRefused, User.DoesNotExist."""

    def change(user: User) -> None:
        group = Group.objects.get(name=held.role)
        if held.account is None:
            user.groups.add(group)
        else:
            Grant.objects.get_or_create(
                user=user,
                role=group,
                account=held.account,
                defaults={"granted_at": engine.clock()},
            )

    return _change(engine, user_id, "role_given", reason, actor, change)


def take_role(*, engine: Engine, user_id: int, held: Held, reason: str, actor: Actor) -> User:
    """A role less. Raises PersonRefused, User.DoesNotExist."""

    def change(user: User) -> None:
        group = Group.objects.get(name=held.role)
        if held.account is None:
            user.groups.remove(group)
        else:
            Grant.objects.filter(user=user, role=group, account=held.account).delete()

    return _change(engine, user_id, "role_taken", reason, actor, change)


def disable_person(*, engine: Engine, user_id: int, reason: str, actor: Actor) -> User:
    """They are out at once, in every session. Raises PersonRefused, User.DoesNotExist."""

    def change(user: User) -> None:
        user.is_active = False
        user.save(update_fields=["is_active"])
        _end_sessions(user)

    return _change(engine, user_id, "person_disabled", reason, actor, change)


def enable_person(*, engine: Engine, user_id: int, reason: str, actor: Actor) -> User:
    """They may sign in again. Raises PersonRefused, User.DoesNotExist."""

    def change(user: User) -> None:
        user.is_active = True
        user.save(update_fields=["is_active"])

    return _change(engine, user_id, "person_enabled", reason, actor, change)


def remove_second_factor(*, engine: Engine, user_id: int, reason: str, actor: Actor) -> User:
    """For who has lost it: they set up another. Raises PersonRefused, User.DoesNotExist."""

    def change(user: User) -> None:
        Authenticator.objects.filter(user=user).delete()
        _end_sessions(user)

    return _change(engine, user_id, "second_factor_reset", reason, actor, change)


def standing(user: User) -> Mapping[str, Any]:
    """What the audit trail keeps of a person."""
    grants = Grant.objects.filter(user=user).order_by("account__name", "role__name")
    return {
        "person": user.get_username(),
        "active": user.is_active,
        "roles": sorted(user.groups.values_list("name", flat=True)),
        "at_account": [f"{row.role.name} at {row.account.name}" for row in grants],
        "second_factors": Authenticator.objects.filter(user=user).count(),
    }


@transaction.atomic
def _change(
    engine: Engine,
    user_id: int,
    action: str,
    reason: str,
    actor: Actor,
    change: Callable[[User], None],
) -> User:
    user = User.objects.select_for_update().get(pk=user_id)
    if str(user.pk) == actor.id:
        raise PersonRefused(say("Somebody else has to change what you may do."))
    before = standing(user)
    change(user)
    after = standing(user)
    if before == after:
        raise PersonRefused(say("It is so already."))
    _write(engine, actor, user, action, reason, before=before, after=after)
    return user


def _write(
    engine: Engine,
    actor: Actor,
    user: User,
    action: str,
    reason: str,
    *,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> None:
    if not reason.strip():
        raise PersonRefused(say("Say why."))
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action=action,
        now=engine.clock(),
        before=dict(before),
        after=dict(after),
        reason=reason.strip(),
    )


def _end_sessions(user: User) -> None:
    for session in UserSession.objects.filter(user=user):
        session.end()
