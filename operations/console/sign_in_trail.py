"""Writes down what happens around signing in, as it is signalled."""

from typing import Any

from allauth.account.signals import password_changed, password_set
from allauth.account.signals import user_logged_in as signed_in
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import (
    authentication_failed,
    authenticator_added,
    authenticator_removed,
    authenticator_reset,
)
from allauth.mfa.utils import is_mfa_enabled
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from operations.console.proving import begin, methods_of, note_second_factor
from operations.domain.audit import Actor, ActorKind
from operations.services.actors import name_of
from operations.services.engine import default_engine
from operations.services.signing_in import record_sign_in


def _record(action: str, request: HttpRequest | None, user: User | None, **facts: object) -> None:
    if request is None:
        return
    actor = Actor(
        kind=ActorKind.PERSON,
        id=str(user.pk) if user else "nobody",
        name=name_of(user) if user else "Somebody unknown",
        address=str(request.META.get("REMOTE_ADDR", ""))[:64],
    )
    record_sign_in(engine=default_engine(), action=action, actor=actor, facts=facts)


@receiver(user_logged_in)
def _start_clocks(request: HttpRequest, **_more: Any) -> None:
    begin(request)


@receiver(signed_in)
def _signed_in(request: HttpRequest, user: User, **_more: Any) -> None:
    _record("signed_in", request, user, methods=methods_of(request))


@receiver(user_logged_out)
def _signed_out(request: HttpRequest, user: User | None, **_more: Any) -> None:
    if isinstance(user, User) and request is not None and "REMOTE_ADDR" in request.META:
        _record("signed_out", request, user)


@receiver(user_login_failed)
def _failed(credentials: dict[str, Any], request: HttpRequest | None = None, **_more: Any) -> None:
    # What was typed may be a password in the wrong field: only names of people are kept.
    user = User.objects.filter(username=str(credentials.get("username", ""))[:150]).first()
    _record("sign_in_failed", request, user, step="password")


@receiver(authentication_failed)
def _second_failed(request: HttpRequest, user: User, **_more: Any) -> None:
    _record("sign_in_failed", request, user, step="second factor")


@receiver([password_changed, password_set])
def _password(request: HttpRequest, user: User, **_more: Any) -> None:
    _record("password_changed", request, user)


@receiver(authenticator_added)
def _added(request: HttpRequest, user: User, authenticator: Authenticator, **_more: Any) -> None:
    if authenticator.type != Authenticator.Type.RECOVERY_CODES:
        note_second_factor(request, there=True)
    _record("second_factor_added", request, user, kind=authenticator.type)


@receiver(authenticator_removed)
def _removed(request: HttpRequest, user: User, authenticator: Authenticator, **_more: Any) -> None:
    kinds = [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]
    note_second_factor(request, there=is_mfa_enabled(user, kinds))
    _record("second_factor_removed", request, user, kind=authenticator.type)


@receiver(authenticator_reset)
def _reset(request: HttpRequest, user: User, authenticator: Authenticator, **_more: Any) -> None:
    _record("second_factor_renewed", request, user, kind=authenticator.type)
