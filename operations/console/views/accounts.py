"""The accounts at the provider: what they are doing, and stopping all sending on one."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from operations.console.forms import ReasonForm
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import show_refusal
from operations.domain.money import Money
from operations.models import Account, AuditEntry
from operations.queries.accounts import account_states
from operations.services.engine import Engine, default_engine
from operations.services.pausing import PauseRefused, pause_sending, resume_sending


@require_GET
@allows(Act.ADMINISTER, narrows=True)
def accounts(request: ConsoleRequest) -> HttpResponse:
    """All accounts and whether they send."""
    return answer(
        request, "operations/accounts.html", {"states": account_states(accounts=request.accounts)}
    )


@require_GET
@allows(Act.ADMINISTER)
def account(request: ConsoleRequest, account_id: int) -> HttpResponse:
    """One account: its state, its provider's contract, its limits, and who paused it when."""
    return _account(request, account_id)


@require_POST
@allows(Act.ADMINISTER)
def pause(request: ConsoleRequest, account_id: int) -> HttpResponse:
    """Stop all sending, with a reason."""
    return _change(request, account_id, pause_sending, _("Sending is paused."))


@require_POST
@allows(Act.ADMINISTER)
def resume(request: ConsoleRequest, account_id: int) -> HttpResponse:
    """Let sending go on, with a reason."""
    return _change(request, account_id, resume_sending, _("Sending goes on."))


def _change(
    request: ConsoleRequest, account_id: int, act: Callable[..., Account], done: str
) -> HttpResponse:
    found = Account.objects.filter(pk=account_id).first()
    if found is None:
        raise Http404
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _account(request, account_id, form=form, status=422)
    try:
        act(
            engine=default_engine(),
            account=found,
            reason=form.cleaned_data["reason"],
            actor=actor_of(request),
        )
    except PauseRefused as refusal:
        show_refusal(form, refusal)
        return _account(request, account_id, form=form, status=409)
    messages.success(request, done)
    return redirect("account", account_id)


def _account(
    request: ConsoleRequest, account_id: int, *, form: ReasonForm | None = None, status: int = 200
) -> HttpResponse:
    states = account_states(account_id)
    if not states:
        raise Http404
    engine, state = default_engine(), states[0]
    history = AuditEntry.objects.filter(
        chain="system",
        action__in=["sending_paused", "sending_resumed"],
        after__account=state.account.name,
    )
    context = {
        "state": state,
        "account": state.account,
        "form": form,
        "contract": engine.provider(state.account).contract,
        "history": history.order_by("-number")[:20],
        **_limits(engine),
    }
    return answer(request, "operations/account.html", context, status=status)


def _limits(engine: Engine) -> dict[str, Any]:
    """What the settings allow, in the words of the page."""
    return {
        "budget": engine.budget,
        "window": engine.key_window,
        "second_person": [
            Money(amount, currency)
            for currency, amount in sorted(settings.RECONCILE.second_person_above.items())
        ],
        "exposure_limits": [
            (limit.scope, limit.most, Money(limit.most, limit.currency) if limit.currency else None)
            for limit in engine.exposure_limits
        ],
    }
