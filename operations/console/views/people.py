"""People: added, given roles everywhere or at one account, and let in or not."""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import show_refusal
from operations.domain.access import Role
from operations.models import Account, AuditEntry
from operations.queries.people import MOST_SHOWN, people
from operations.services import people as changing
from operations.services.engine import default_engine
from operations.services.people import Held, PersonRefused

_SAY_WHY = gettext_lazy("Say why.")


class AddForm(forms.Form):
    """Somebody new."""

    name = forms.RegexField(
        r"^[\w.@+-]{1,150}$",
        error_messages={
            "required": gettext_lazy("Say the name to sign in with."),
            "invalid": gettext_lazy("A name has letters, digits and . @ + - _ only."),
        },
    )
    first_name = forms.CharField(max_length=150, required=False)
    last_name = forms.CharField(max_length=150, required=False)
    reason = forms.CharField(max_length=500, error_messages={"required": _SAY_WHY})


class ChangeForm(forms.Form):
    """One change. Without an account a role is meant everywhere."""

    what = forms.ChoiceField(
        choices=[(name, name) for name in ("give", "take", "disable", "enable", "reset")]
    )
    role = forms.ChoiceField(choices=[(str(role), str(role)) for role in Role], required=False)
    account = forms.ModelChoiceField(Account.objects.all(), required=False)
    reason = forms.CharField(max_length=500, error_messages={"required": _SAY_WHY})

    def clean(self) -> dict[str, Any]:
        """Giving and taking want a role."""
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("what") in ("give", "take") and not cleaned.get("role"):
            self.add_error("role", _("Choose a role."))
        return cleaned


_CHANGES: Mapping[str, Callable[..., User]] = {
    "give": changing.give_role,
    "take": changing.take_role,
    "disable": changing.disable_person,
    "enable": changing.enable_person,
    "reset": changing.remove_second_factor,
}


@require_http_methods(["GET", "HEAD", "POST"])
@allows(Act.PEOPLE)
def everybody(request: ConsoleRequest) -> HttpResponse:
    """All people, and a form for one more, whose password is shown in the answer, once."""
    if request.method != "POST":
        return _list(request, AddForm())
    form = AddForm(request.POST)
    if not form.is_valid():
        return _list(request, form, status=422)
    try:
        user, password = changing.add_person(
            engine=default_engine(), actor=actor_of(request), **form.cleaned_data
        )
    except PersonRefused as refusal:
        show_refusal(form, refusal)
        return _list(request, form, status=409)
    return _one(request, user.pk, secret=password)


@require_GET
@allows(Act.PEOPLE)
def person(request: ConsoleRequest, person_id: int) -> HttpResponse:
    """One person: roles, second factor, last sign-in, and what was changed by whom."""
    return _one(request, person_id)


@require_POST
@allows(Act.PEOPLE)
def change(request: ConsoleRequest, person_id: int) -> HttpResponse:
    """One change, with a reason."""
    if not User.objects.filter(pk=person_id).exists():
        raise Http404
    form = ChangeForm(request.POST)
    if not form.is_valid():
        return _one(request, person_id, form=form, status=422)
    cleaned = form.cleaned_data
    more: dict[str, Any] = {}
    if cleaned["what"] in ("give", "take"):
        more["held"] = Held(role=Role(cleaned["role"]), account=cleaned["account"])
    try:
        _CHANGES[cleaned["what"]](
            engine=default_engine(),
            user_id=person_id,
            reason=cleaned["reason"],
            actor=actor_of(request),
            **more,
        )
    except PersonRefused as refusal:
        show_refusal(form, refusal)
        return _one(request, person_id, form=form, status=409)
    messages.success(request, _("The change is recorded and holds from now on."))
    return redirect("person", person_id)


def _list(request: ConsoleRequest, form: AddForm, *, status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "rows": list(people()[:MOST_SHOWN]),
        "require_mfa": settings.RECONCILE.sign_in.require_mfa,
    }
    return answer(request, "operations/people.html", context, status=status)


def _one(
    request: ConsoleRequest,
    person_id: int,
    *,
    form: ChangeForm | None = None,
    secret: str = "",
    status: int = 200,
) -> HttpResponse:
    found = people().filter(pk=person_id).first()
    if found is None:
        raise Http404
    history = AuditEntry.objects.filter(chain="system", after__person=found.get_username())
    context = {
        "person": found,
        "form": form,
        "secret": secret,
        "roles": [str(role) for role in Role],
        "accounts": Account.objects.order_by("name", "livemode"),
        "history": history.order_by("-number")[:50],
        "is_self": found.pk == request.user.pk,
    }
    return answer(request, "operations/person.html", context, status=status)
