"""The inbox: when the last webhook came, what waits, what failed, and trying it again."""

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import show_refusal
from operations.jobs import wake_inbox
from operations.queries.figures import COUNT_CAP
from operations.queries.inbox import (
    COUNTED,
    failing_items,
    inbox_figures,
    newest_handlings,
    stuck_items,
)
from operations.services.engine import default_engine
from operations.services.replaying import ReplayRefused, replay


class ReplayForm(forms.Form):
    """Why it should go well now."""

    reason = forms.CharField(
        max_length=500, error_messages={"required": _("Say why it should go well now.")}
    )


@require_GET
@allows(Act.READ)
def inbox(request: ConsoleRequest) -> HttpResponse:
    """How the inbox stands."""
    return _page(request, ReplayForm())


@require_POST
@allows(Act.DECIDE)
def replay_all(request: ConsoleRequest) -> HttpResponse:
    """Let all stuck events have their tries again."""
    return _replay(request, None)


@require_POST
@allows(Act.DECIDE)
def replay_one(request: ConsoleRequest, event_pk: int) -> HttpResponse:
    """Let one stuck event have its tries again."""
    return _replay(request, event_pk)


def _replay(request: ConsoleRequest, event_pk: int | None) -> HttpResponse:
    form = ReplayForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    try:
        count = replay(
            engine=default_engine(),
            actor=actor_of(request),
            reason=form.cleaned_data["reason"],
            event_pk=event_pk,
        )
    except ReplayRefused as refusal:
        show_refusal(form, refusal)
        return _page(request, form, status=409)
    wake_inbox()
    messages.success(
        request,
        ngettext("%(count)d event is tried again.", "%(count)d events are tried again.", count)
        % {"count": count},
    )
    return redirect("inbox")


def _page(request: ConsoleRequest, form: ReplayForm, *, status: int = 200) -> HttpResponse:
    context = {
        "figures": inbox_figures(),
        "count_cap": COUNT_CAP,
        "stuck": stuck_items(),
        "failing": failing_items(),
        "handlings": newest_handlings(),
        "counted": COUNTED,
        "form": form,
    }
    return answer(request, "operations/inbox.html", context, status=status)
