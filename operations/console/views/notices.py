"""Who is told, what was told, and sending it again. For administrators."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from operations.console.notice_forms import DisableForm, RollForm, SubscriptionForm
from operations.console.notice_wording import STATE
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import in_words, show_refusal
from operations.models import Account, Delivery, Subscription
from operations.queries.deliveries import (
    backlogs,
    deliveries_page,
    delivery_with_tries,
    subscriptions_page,
)
from operations.services import subscribing
from operations.services.engine import default_engine
from operations.services.subscribing import SubscriptionRefused


@require_http_methods(["GET", "HEAD", "POST"])
@allows(Act.SUBSCRIPTIONS)
def subscriptions(request: ConsoleRequest) -> HttpResponse:
    """All subscriptions, and a form for one more. Its secret is shown in the answer, once."""
    if request.method != "POST":
        return _list(request, SubscriptionForm())
    form = SubscriptionForm(request.POST)
    if form.is_valid():
        try:
            made = subscribing.subscribe(
                engine=default_engine(), wanted=form.wanted(), actor=actor_of(request)
            )
        except SubscriptionRefused as refusal:
            show_refusal(form, refusal)
        else:
            return _secret(request, made, rolled=False)
    return _list(request, form, status=422)


@require_GET
@allows(Act.SUBSCRIPTIONS)
def subscription(request: ConsoleRequest, subscription_id: UUID) -> HttpResponse:
    """One subscription and what it was told."""
    return _one(request, _subscription_or_404(subscription_id))


@require_POST
@allows(Act.SUBSCRIPTIONS)
def roll_secret(request: ConsoleRequest, subscription_id: UUID) -> HttpResponse:
    """A new secret, shown in the answer, once."""
    found = _subscription_or_404(subscription_id)
    form = RollForm(request.POST)
    if not form.is_valid():
        return _one(request, found, status=422, roll_form=form)
    rolled = subscribing.roll_secret(
        engine=default_engine(),
        subscription_id=found.pk,
        actor=actor_of(request),
        keep_old_s=form.keep_old_s,
    )
    return _secret(request, rolled, rolled=True)


@require_POST
@allows(Act.SUBSCRIPTIONS)
def disable(request: ConsoleRequest, subscription_id: UUID) -> HttpResponse:
    """It is told nothing more, with a reason."""
    found = _subscription_or_404(subscription_id)
    form = DisableForm(request.POST)
    if not form.is_valid():
        return _one(request, found, status=422, disable_form=form)
    subscribing.disable(
        engine=default_engine(),
        subscription_id=found.pk,
        actor=actor_of(request),
        reason=form.cleaned_data["reason"],
    )
    return redirect("subscription", found.pk)


@require_POST
@allows(Act.SUBSCRIPTIONS)
def enable(request: ConsoleRequest, subscription_id: UUID) -> HttpResponse:
    """It is told again."""
    found = _subscription_or_404(subscription_id)
    subscribing.enable(engine=default_engine(), subscription_id=found.pk, actor=actor_of(request))
    return redirect("subscription", found.pk)


@require_GET
@allows(Act.SUBSCRIPTIONS)
def delivery(request: ConsoleRequest, delivery_id: int) -> HttpResponse:
    """One notice to one subscriber: what was sent, and how each try ended."""
    return _delivery(request, delivery_id)


@require_POST
@allows(Act.SUBSCRIPTIONS)
def send_again(request: ConsoleRequest, delivery_id: int) -> HttpResponse:
    """The same bytes go out once more, under the same id."""
    if not Delivery.objects.filter(pk=delivery_id).exists():
        raise Http404
    try:
        subscribing.send_again(
            engine=default_engine(), delivery_id=delivery_id, actor=actor_of(request)
        )
    except SubscriptionRefused as refusal:
        return _delivery(request, delivery_id, refused=in_words(refusal.sentence), status=409)
    messages.success(request, _("It goes out again within seconds, under the same id."))
    return redirect("delivery", delivery_id)


def _list(request: ConsoleRequest, form: SubscriptionForm, *, status: int = 200) -> HttpResponse:
    page = subscriptions_page(Subscription.objects.all(), after=request.GET.get("after", ""))
    found = backlogs(page.rows)
    context = {
        "form": form,
        "rows": [(row, found[row.pk]) for row in page.rows],
        "next_after": page.next_after,
        "accounts": Account.objects.order_by("name", "livemode"),
    }
    return answer(request, "operations/subscriptions.html", context, status=status)


def _one(
    request: ConsoleRequest, found: Subscription, *, status: int = 200, **forms: Any
) -> HttpResponse:
    state = request.GET.get("state", "")
    rows = Delivery.objects.filter(subscription=found)
    if state in STATE:
        rows = rows.filter(state=state)
    page = deliveries_page(rows, after=request.GET.get("after", ""))
    context = {
        "subscription": found,
        "backlog": backlogs([found])[found.pk],
        "page": page,
        "state": state if state in STATE else "",
        "after": request.GET.get("after", ""),
        **forms,
    }
    return answer(request, "operations/subscription.html", context, status=status)


def _secret(request: ConsoleRequest, made: Subscription, *, rolled: bool) -> HttpResponse:
    context = {"subscription": made, "rolled": rolled}
    return answer(request, "operations/subscription_secret.html", context)


def _delivery(
    request: ConsoleRequest, delivery_id: int, *, refused: str = "", status: int = 200
) -> HttpResponse:
    found = delivery_with_tries(Delivery.objects.all(), delivery_id)
    if found is None:
        raise Http404
    context = {"delivery": found, "refused": refused}
    return answer(request, "operations/delivery.html", context, status=status)


def _subscription_or_404(subscription_id: UUID) -> Subscription:
    found = Subscription.objects.select_related("account", "api_key").filter(pk=subscription_id)
    row = found.first()
    if row is None:
        raise Http404
    return row
