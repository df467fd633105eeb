"""Who may do what, and where. Roles are Django groups; the site's administrators do everything."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils.http import urlencode
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from operations.console.keeping import page_of, signed_copy, take_in
from operations.console.proving import wants_second_factor
from operations.domain.access import Accounts, Act, Rights, Role
from operations.domain.audit import Actor, ActorKind
from operations.queries.access import ACCOUNT_OF, read_rights
from operations.services.actors import name_of

__all__ = ["Act", "ConsoleRequest", "Role", "actor_of", "allows", "prove_again"]

P = ParamSpec("P")


class ConsoleRequest(HttpRequest):
    """A request after the middleware and `allows`: who asks, and what they may do.

    `acts` is what they may do with what the address names or, where it names nothing, at one
    account at least; `accounts` is where they may do what the view does.
    """

    htmx: HtmxDetails
    user: User
    rights: Rights
    acts: frozenset[Act]
    accounts: Accounts


def actor_of(request: ConsoleRequest) -> Actor:
    """The person who asks, as the audit trail names them."""
    user = request.user
    return Actor(
        kind=ActorKind.PERSON,
        id=str(user.pk),
        name=name_of(user),
        address=request.META.get("REMOTE_ADDR", ""),
    )


def allows(
    act: Act, *, narrows: bool = False
) -> Callable[
    [Callable[Concatenate[ConsoleRequest, P], HttpResponse]],
    Callable[Concatenate[HttpRequest, P], HttpResponse],
]:
    """Let only signed-in people with this right through; nobody else changes or sees anything.

    What the address names belongs to an account: of another one than the person's it is not there.
    An address that names nothing is open to people of single accounts only where the view
    `narrows` what it shows and does to `request.accounts`.
    """

    def decorate(
        view: Callable[Concatenate[ConsoleRequest, P], HttpResponse],
    ) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not request.user.is_authenticated:
                return _sign_in(cast("ConsoleRequest", request))
            return _as(act, narrows, cast("ConsoleRequest", request), view, *args, **kwargs)

        return guarded

    return decorate


def _as(
    act: Act,
    narrows: bool,
    request: ConsoleRequest,
    view: Callable[Concatenate[ConsoleRequest, P], HttpResponse],
    *args: P.args,
    **kwargs: P.kwargs,
) -> HttpResponse:
    rights = read_rights(request.user)
    request.rights, request.accounts = rights, rights.accounts(act)
    request.acts = rights.everywhere
    if rights.at_account and not rights.everywhere >= rights.anywhere:
        named = next((name for name in kwargs if name in ACCOUNT_OF), None)
        if named is not None:
            request.acts = rights.at(ACCOUNT_OF[named](kwargs[named]))
            if Act.READ not in request.acts:
                raise Http404
        elif narrows:
            request.acts = rights.anywhere
    if wants_second_factor(request, rights):
        return _set_up_first(request)
    if act not in request.acts:
        return _denied(request)
    return view(request, *args, **kwargs)


def _set_up_first(request: ConsoleRequest) -> HttpResponse:
    """A password alone is too little for what this person may do."""
    target = f"{reverse('mfa_index')}?needed=1"
    return HttpResponseClientRedirect(target) if request.htmx else redirect(target)


def prove_again(request: ConsoleRequest, page: str) -> HttpResponse:
    """To confirm who one is, and back to this page with the form that was just sent."""
    copy = signed_copy(request)
    take_in(request, copy)
    query = urlencode({"next": page})
    target = f"{reverse('account_reauthenticate')}?{query}"
    return HttpResponseClientRedirect(target) if request.htmx else redirect(target)


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
    context = {
        "form": AuthenticationForm(request),
        "next": page,
        "kept": signed_copy(request),
        "oidc": settings.RECONCILE.sign_in.oidc,
    }
    return render(request, "registration/login.html", context, status=status)


def _denied(request: ConsoleRequest) -> HttpResponse:
    # Answered, not raised: a raised one is logged with a traceback, and nothing is broken here.
    return render(request, "403.html#denied" if request.htmx else "403.html", status=403)
