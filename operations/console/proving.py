"""How a person of this session proved who they are, and how long ago."""

import time
from datetime import datetime
from typing import Any

from allauth.account.authentication import get_authentication_records
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest

from operations.domain.access import Rights

_BEGAN, _SEEN, _SECOND = "session_began", "session_seen", "second_factor"
#: The last use of a session is written this often, in seconds.
_SEEN_EXACT_S = 60


def begin(request: HttpRequest) -> None:
    """A person has signed in: the session's two clocks start."""
    request.session[_BEGAN] = request.session[_SEEN] = time.time()


def is_over(request: HttpRequest) -> bool:
    """Whether the session is too old or was left alone too long; else that it is in use is kept."""
    policy, now = settings.RECONCILE.sign_in, time.time()
    began, seen = request.session.get(_BEGAN), request.session.get(_SEEN)
    if not isinstance(began, float) or not isinstance(seen, float):
        return True
    if now - began > policy.session_age_s or now - seen > policy.session_idle_s:
        return True
    if now - seen > _SEEN_EXACT_S:
        request.session[_SEEN] = now
    return False


def proved_recently(request: HttpRequest) -> bool:
    """Whether the person signed in, or confirmed it, within the time that large decisions want."""
    times = [request.session.get(_BEGAN, 0.0), *(row["at"] for row in _records(request))]
    return bool(time.time() - max(times) <= settings.RECONCILE.sign_in.reauthenticate_s)


def note_second_factor(request: HttpRequest, *, there: bool) -> None:
    """One was set up in this session, or the last one was removed."""
    request.session[_SECOND] = there


def wants_second_factor(request: HttpRequest, rights: Rights) -> bool:
    """Whether this person has to set up a second factor before anything else."""
    if not settings.RECONCILE.sign_in.require_mfa or not rights.need_second_factor:
        return False
    passed = request.session.get(_SECOND)
    if passed is None:
        passed = any(row["method"] == "mfa" for row in _records(request))
    return not passed


def methods_of(request: HttpRequest) -> list[str]:
    """How the person signed in, such as `password` and `mfa`."""
    return [str(row["method"]) for row in _records(request)]


def began_at(request: HttpRequest) -> datetime | None:
    """When this session began."""
    began = request.session.get(_BEGAN)
    return datetime.fromtimestamp(began).astimezone() if began else None


def _records(request: HttpRequest) -> list[dict[str, Any]]:
    user = request.user
    found: list[dict[str, Any]] = (
        get_authentication_records(request, user) if isinstance(user, User) else []
    )
    return found
