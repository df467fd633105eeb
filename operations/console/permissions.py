"""Who may do what. Roles are Django groups; an administrator of the site may do everything."""

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from operations.console.keeping import page_of, signed_copy
from operations.domain.audit import Actor, ActorKind

P = ParamSpec("P")


class Role(StrEnum):
    """The names of the groups."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    APPROVER = "approver"
    ADMIN = "admin"


class Act(StrEnum):
    """What can be done in the console."""

    READ = "read"
    DECIDE = "decide"
    APPROVE = "approve"
    ADMINISTER = "administer"


_MAY: dict[Act, frozenset[str]] = {
    Act.READ: frozenset(Role),
    Act.DECIDE: frozenset([Role.OPERATOR, Role.APPROVER, Role.ADMIN]),
    Act.APPROVE: frozenset([Role.APPROVER, Role.ADMIN]),
    Act.ADMINISTER: frozenset([Role.ADMIN]),
}


class ConsoleRequest(HttpRequest):
    """A request after the middleware and `allows`: who asks, and what they may do."""

    htmx: HtmxDetails
    user: User
    acts: frozenset[Act]


def acts_of(user: User | AnonymousUser) -> frozenset[Act]:
    """What a person may do, by their groups. One query."""
    if not user.is_active:
        return frozenset()
    if user.is_superuser:
        return frozenset(Act)
    roles = set(user.groups.values_list("name", flat=True))
    return frozenset(act for act, allowed in _MAY.items() if roles & allowed)


def actor_of(request: ConsoleRequest) -> Actor:
    """The person who asks, as the audit trail names them."""
    user = request.user
    return Actor(
        kind=ActorKind.PERSON,
        id=str(user.pk),
        name=user.get_full_name() or user.get_username(),
        address=request.META.get("REMOTE_ADDR", ""),
    )


def allows(
    act: Act,
) -> Callable[
    [Callable[Concatenate[ConsoleRequest, P], HttpResponse]],
    Callable[Concatenate[HttpRequest, P], HttpResponse],
]:
    """Let only signed-in people with this right through; nobody else changes or sees anything."""

    def decorate(
        view: Callable[Concatenate[ConsoleRequest, P], HttpResponse],
    ) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not request.user.is_authenticated:
                return _sign_in(cast("ConsoleRequest", request))
            return _as(act, cast("ConsoleRequest", request), view, *args, **kwargs)

        return guarded

    return decorate


def _as(
    act: Act,
    request: ConsoleRequest,
    view: Callable[Concatenate[ConsoleRequest, P], HttpResponse],
    *args: P.args,
    **kwargs: P.kwargs,
) -> HttpResponse:
    request.acts = acts_of(request.user)
    if act not in request.acts:
        return _denied(request)
    return view(request, *args, **kwargs)


def _sign_in(request: ConsoleRequest) -> HttpResponse:
    """Back to the page one was on, also for a fragment whose session has ended."""
    if request.htmx:
        target = redirect_to_login(request.htmx.current_url_abs_path or "/").url
        return HttpResponseClientRedirect(target)
    if request.method in ("GET", "HEAD"):
        return redirect_to_login(request.get_full_path(), resolve_url(settings.LOGIN_URL))
    page = page_of(request)
    if not page:
        return redirect_to_login("/", resolve_url(settings.LOGIN_URL))
    return sign_in_first(request, page, status=401)


def sign_in_first(request: HttpRequest, page: str, *, status: int) -> HttpResponse:
    """The page to sign in on answers a form itself, so that nothing of it is lost."""
    context = {"form": AuthenticationForm(request), "next": page, "kept": signed_copy(request)}
    return render(request, "registration/login.html", context, status=status)


def _denied(request: ConsoleRequest) -> HttpResponse:
    if request.htmx:
        return render(request, "403.html#denied", status=403)
    raise PermissionDenied
