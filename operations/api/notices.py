"""Subscriptions and deliveries over the API: a key sees and changes what it made itself."""

import uuid
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from ninja.decorators import decorate_view

from operations.api.bodies import caller, json_only, key_of
from operations.api.documented import CONFLICT
from operations.api.notice_schemas import (
    DeliveryAnswer,
    DeliveryList,
    DisableRequest,
    RollRequest,
    SubscriptionAnswer,
    SubscriptionList,
    SubscriptionRequest,
    SubscriptionWithSecret,
)
from operations.api.problems import problem, wrong_method
from operations.domain.access import within
from operations.domain.sentences import say
from operations.models import Account, Delivery, DeliveryState, Subscription
from operations.queries.deliveries import (
    PAGE_SIZE,
    deliveries_page,
    delivery_with_tries,
    subscriptions_page,
)
from operations.services import subscribing
from operations.services.accounts import UnknownAccount, account_for
from operations.services.engine import default_engine

router = Router(tags=["notices"])

After = Annotated[str, Query(max_length=40, description="`next_after` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=PAGE_SIZE)]


@router.post("/subscriptions", response={201: SubscriptionWithSecret}, summary="Be told")
@decorate_view(json_only)
def subscribe(request: HttpRequest, wish: SubscriptionRequest) -> Any:
    """Post every change to an address from now on, signed with the secret that is shown here only.

    422: the address can't be used, and why.
    """
    engine = default_engine()
    account: Account | None = None
    reached = key_of(request).accounts
    if reached is not None and not wish.account:
        raise subscribing.SubscriptionRefused(
            say("Name one of the accounts that this key is for."), "account"
        )
    if wish.account:
        try:
            account = account_for(engine=engine, name=wish.account)
            if not within(reached, account.pk):
                raise UnknownAccount(wish.account)
        except UnknownAccount:
            raise subscribing.SubscriptionRefused(
                say("There is no account of this name."), "account"
            ) from None
    subscription = subscribing.subscribe(
        engine=engine,
        wanted=subscribing.Wanted(
            address=wish.address, name=wish.name, types=wish.types, account=account
        ),
        actor=caller(request),
        api_key=key_of(request),
    )
    return Status(201, _shown(subscription) | {"secret": subscription.secret})


@router.get("/subscriptions", response=SubscriptionList, summary="Your subscriptions")
def list_subscriptions(request: HttpRequest, after: After = "", limit: Limit = PAGE_SIZE) -> Any:
    """Those that this key made, newest first."""
    page = subscriptions_page(_subscriptions(request), after=after, size=limit)
    return {
        "subscriptions": [_shown(row) for row in page.rows],
        "next_after": page.next_after or None,
    }


@router.get("/subscriptions/{subscription_id}", response=SubscriptionAnswer, summary="One of them")
def read_subscription(request: HttpRequest, subscription_id: str) -> Any:
    """How it stands: whether it is disabled and why, and since when it fails."""
    found = _subscription(request, subscription_id)
    return _shown(found) if found else _no_subscription()


@router.post(
    "/subscriptions/{subscription_id}/roll-secret",
    response=SubscriptionWithSecret,
    summary="Make a new secret",
)
@decorate_view(json_only)
def roll_secret(request: HttpRequest, subscription_id: str, wish: RollRequest) -> Any:
    """The new secret is shown here only; the old one signs beside it for a while."""
    found = _subscription(request, subscription_id)
    if found is None:
        return _no_subscription()
    rolled = subscribing.roll_secret(
        engine=default_engine(),
        subscription_id=found.pk,
        actor=caller(request),
        keep_old_s=wish.keep_old_s,
    )
    return _shown(rolled) | {"secret": rolled.secret}


@router.post(
    "/subscriptions/{subscription_id}/disable", response=SubscriptionAnswer, summary="Stop it"
)
@decorate_view(json_only)
def disable(request: HttpRequest, subscription_id: str, wish: DisableRequest) -> Any:
    """Nothing more is told. What waits is kept. Asking again is harmless."""
    found = _subscription(request, subscription_id)
    if found is None:
        return _no_subscription()
    return _shown(
        subscribing.disable(
            engine=default_engine(),
            subscription_id=found.pk,
            actor=caller(request),
            reason=wish.reason,
        )
    )


@router.post(
    "/subscriptions/{subscription_id}/enable",
    response=SubscriptionAnswer,
    summary="Let it go on",
    openapi_extra=CONFLICT,
)
def enable(request: HttpRequest, subscription_id: str) -> Any:
    """What still waits goes out first. What happened meanwhile was not written down for it.

    409: a person disabled it.
    """
    found = _subscription(request, subscription_id)
    if found is None:
        return _no_subscription()
    try:
        enabled = subscribing.enable(
            engine=default_engine(), subscription_id=found.pk, actor=caller(request)
        )
    except subscribing.SubscriptionRefused as refusal:
        return problem(409, "disabled_by_a_person", str(refusal))
    return _shown(enabled)


@router.get("/deliveries", response=DeliveryList, summary="What was told")
def list_deliveries(
    request: HttpRequest,
    subscription: UUID | None = None,
    operation_id: UUID | None = None,
    state: Literal["waiting", "delivered", "failed"] | None = None,
    after: After = "",
    limit: Limit = PAGE_SIZE,
) -> Any:
    """Deliveries to this key's subscriptions, newest first, each with its tries."""
    wanted = {"subscription": subscription, "operation": operation_id, "state": state}
    rows = _deliveries(request).filter(**{name: value for name, value in wanted.items() if value})
    page = deliveries_page(rows, after=after, size=limit)
    return {
        "deliveries": [_told(row) for row in page.rows],
        "next_after": page.next_after or None,
    }


@router.get("/deliveries/{delivery_id}", response=DeliveryAnswer, summary="One of them")
def read_delivery(request: HttpRequest, delivery_id: str) -> Any:
    """Its state and every try with what came back."""
    found = _delivery(request, delivery_id)
    return _told(found) if found else _no_delivery()


@router.post(
    "/deliveries/{delivery_id}/send-again",
    response={202: DeliveryAnswer},
    summary="Send it again",
    openapi_extra=CONFLICT,
)
def send_again(request: HttpRequest, delivery_id: str) -> Any:
    """The same bytes under the same id; one that waits is tried now.

    409: its subscription is disabled.
    """
    found = _delivery(request, delivery_id)
    if found is None:
        return _no_delivery()
    engine = default_engine()
    try:
        subscribing.send_again(engine=engine, delivery_id=found.pk, actor=caller(request))
    except subscribing.SubscriptionRefused as refusal:
        return problem(409, "subscription_disabled", str(refusal))
    again = _delivery(request, delivery_id)
    return Status(202, _told(again)) if again else _no_delivery()


_NEVER = ["HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"]
_UNLISTED: dict[str, Any] = {"auth": None, "include_in_schema": False}


@router.api_operation(_NEVER, "/subscriptions", **_UNLISTED)
def subscriptions_take_both(request: HttpRequest) -> HttpResponse:
    """They are listed and made."""
    return wrong_method(request, "GET, POST")


@router.api_operation(["POST", *_NEVER], "/deliveries", **_UNLISTED)
def deliveries_take_get(request: HttpRequest) -> HttpResponse:
    """They are read."""
    return wrong_method(request, "GET")


@router.api_operation(["POST", *_NEVER], "/deliveries/{delivery_id}", **_UNLISTED)
def delivery_takes_get(request: HttpRequest, delivery_id: str) -> HttpResponse:
    """It is read."""
    return wrong_method(request, "GET")


@router.api_operation(["POST", *_NEVER], "/subscriptions/{subscription_id}", **_UNLISTED)
def subscription_takes_get(request: HttpRequest, subscription_id: str) -> HttpResponse:
    """It is read."""
    return wrong_method(request, "GET")


@router.api_operation(["GET", *_NEVER], "/deliveries/{delivery_id}/send-again", **_UNLISTED)
def send_again_takes_post(request: HttpRequest, delivery_id: str) -> HttpResponse:
    """It is posted."""
    return wrong_method(request, "POST")


@router.api_operation(["GET", *_NEVER], "/subscriptions/{subscription_id}/disable", **_UNLISTED)
@router.api_operation(["GET", *_NEVER], "/subscriptions/{subscription_id}/enable", **_UNLISTED)
@router.api_operation(["GET", *_NEVER], "/subscriptions/{subscription_id}/roll-secret", **_UNLISTED)
def acts_take_post(request: HttpRequest, subscription_id: str) -> HttpResponse:
    """What changes something is posted."""
    return wrong_method(request, "POST")


def _subscriptions(request: HttpRequest) -> QuerySet[Subscription]:
    return Subscription.objects.filter(api_key=key_of(request))


def _deliveries(request: HttpRequest) -> QuerySet[Delivery]:
    return Delivery.objects.filter(subscription__api_key=key_of(request))


def _subscription(request: HttpRequest, text: str) -> Subscription | None:
    try:
        wanted = uuid.UUID(text)
    except ValueError:
        return None
    return _subscriptions(request).select_related("account").filter(pk=wanted).first()


def _delivery(request: HttpRequest, text: str) -> Delivery | None:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        return None
    return delivery_with_tries(_deliveries(request), int(text))


def _no_subscription() -> HttpResponse:
    return problem(404, "not_found", "This key has no subscription with this id.")


def _no_delivery() -> HttpResponse:
    return problem(404, "not_found", "This key has no delivery with this id.")


def _shown(row: Subscription) -> dict[str, Any]:
    return {
        "id": row.pk,
        "name": row.name,
        "address": row.address,
        "types": row.types,
        "account": row.account.name if row.account else None,
        "created_at": row.created_at,
        "disabled_at": row.disabled_at,
        "disabled_reason": row.disabled_reason or None,
        "failures": row.failures,
        "failing_since": row.failing_since,
        "previous_secret_until": row.previous_secret_until,
    }


def _told(row: Delivery) -> dict[str, Any]:
    waiting = row.state == DeliveryState.WAITING
    return {
        "id": row.pk,
        "message_id": row.message_id,
        "subscription": row.subscription_id,
        "operation_id": row.operation_id,
        "type": row.type,
        "occurred_at": row.occurred_at,
        "state": row.state,
        "next_try_at": row.next_try_at if waiting else None,
        "ended_at": row.ended_at,
        "tries": [
            {
                "number": attempt.number,
                "started_at": attempt.started_at,
                "finished_at": attempt.finished_at,
                "duration_ms": attempt.duration_ms,
                "http_status": attempt.http_status,
                "response": attempt.body,
                "error": attempt.error,
            }
            for attempt in row.attempts.all()
        ],
    }
