"""The keys that callers of the API hold: made, shown once, and revoked."""

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from operations.console.forms import KeyForm, ReasonForm
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import show_refusal
from operations.models import Account, ApiKey
from operations.services.engine import default_engine
from operations.services.keys import KeyRefused, create_api_key, revoke_api_key


@require_http_methods(["GET", "HEAD", "POST"])
@allows(Act.KEYS)
def keys(request: ConsoleRequest) -> HttpResponse:
    """All keys, and a form for one more. Its secret is shown in the answer, once."""
    if request.method != "POST":
        return _list(request)
    form = KeyForm(request.POST)
    if not form.is_valid():
        return _list(request, form=form, status=422)
    try:
        key, secret = create_api_key(
            engine=default_engine(),
            name=form.cleaned_data["name"],
            actor=actor_of(request),
            scope=form.scope(),
        )
    except KeyRefused as refusal:
        show_refusal(form, refusal)
        return _list(request, form=form, status=422)
    return answer(request, "operations/key_secret.html", {"key": key, "secret": secret})


@require_POST
@allows(Act.KEYS)
def revoke(request: ConsoleRequest, key_id: int) -> HttpResponse:
    """End a key, with a reason."""
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _list(request, form=form, status=422)
    try:
        revoke_api_key(
            engine=default_engine(),
            key_id=key_id,
            reason=form.cleaned_data["reason"],
            actor=actor_of(request),
        )
    except ApiKey.DoesNotExist:
        raise Http404 from None
    except KeyRefused as refusal:
        show_refusal(form, refusal)
        return _list(request, form=form, status=409)
    return redirect("keys")


def _list(
    request: ConsoleRequest, *, form: KeyForm | ReasonForm | None = None, status: int = 200
) -> HttpResponse:
    accounts = list(Account.objects.order_by("name", "livemode"))
    names = {account.pk: account.name for account in accounts}
    found = ApiKey.objects.order_by("revoked_at", "name", "pk")
    context = {
        "form": form,
        "accounts": accounts,
        "rows": [(row, [names.get(pk, str(pk)) for pk in row.account_ids]) for row in found],
        "typed": request.POST.get("name", ""),
    }
    return answer(request, "operations/keys.html", context, status=status)
