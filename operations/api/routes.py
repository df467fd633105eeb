"""The routes: parse, one call, answer."""

import uuid
from typing import Annotated, Any

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from ninja import Header, Router, Status
from ninja.decorators import decorate_view
from ninja.errors import AuthenticationError, HttpError, ValidationError

from operations.api.auth import ApiKeyAuth, ReadOnlyKey
from operations.api.bodies import caller, json_only, key_of
from operations.api.documented import CONFLICT, DocumentedAPI
from operations.api.notices import router as notices_router
from operations.api.problems import field_problem, problem, wrong_method
from operations.api.reading import NamedOnceParser, NamedTwice
from operations.api.schemas import GroupAnswer, GroupRequest, RefundAnswer, RefundRequest
from operations.domain.access import within
from operations.domain.identity import RefundInput
from operations.models import Operation
from operations.queries.access import narrowed
from operations.queries.answers import answer, group_answer
from operations.services.engine import default_engine
from operations.services.requesting import (
    AccountOutOfReach,
    Asker,
    ConflictingOperation,
    ExposureReached,
    InputRefused,
    PaymentUnreadable,
    ReusedWithOtherInput,
    request_group,
    request_refund,
)
from operations.services.sending import InProgress
from operations.services.subscribing import SubscriptionRefused

log = structlog.get_logger(__name__)


api = DocumentedAPI(
    parser=NamedOnceParser(),
    title="Reconcile",
    version="1",
    description=(
        "Ask for refunds here instead of at the payment provider. At most one refund per "
        "operation while the provider remembers the key. After that nothing is sent again, and a "
        "person decides on recorded evidence."
    ),
    auth=ApiKeyAuth(),
    urls_namespace="api-v1",
)


@api.post(
    "/refunds",
    response={200: RefundAnswer, 202: RefundAnswer},
    summary="Ask for a refund",
    openapi_extra=CONFLICT,
)
@decorate_view(json_only)
def ask_for_refund(
    request: HttpRequest,
    wish: RefundRequest,
    idempotency_key: Annotated[str, Header(alias="Idempotency-Key", max_length=255)] = "",
) -> Any:
    """Find or open the operation this request stands for, and say how it stands.

    200: `refunded` or `refused`. 202: `processing`, `unconfirmed` (asking again is safe) or
    `checking`. 409: `in_progress` or `conflicting_operation`. 422: the input names its field.
    503: the payment can't be read or our store is down; asking again is safe.
    """
    token = wish.client_request_token or idempotency_key
    if idempotency_key and token != idempotency_key:
        return field_problem(
            "client_request_token",
            "differs from the header Idempotency-Key; send one of them.",
        )
    if not (token.isascii() or token == wish.client_request_token):
        return field_problem("Idempotency-Key", "must be ASCII.")
    engine = default_engine()
    operation = request_refund(
        engine=engine,
        wish=RefundInput(
            account=wish.account,
            order_id=wish.order_id,
            reference=wish.reference,
            amount=wish.amount,
            currency=wish.currency,
            payment=wish.payment,
            customer_account=wish.customer_account,
            reason=wish.reason,
        ),
        asker=_asker(request, wish, token),
    )
    return Status(*answer(operation, now=engine.clock()))


@api.get(
    "/refunds/{operation_id}",
    response={200: RefundAnswer, 202: RefundAnswer},
    summary="How an operation stands",
)
def read_refund(request: HttpRequest, operation_id: str) -> Any:
    """The same answer as it stands now. Never sends."""
    try:
        wanted = uuid.UUID(operation_id)
    except ValueError:
        return _not_found()
    operation = _reached(request).filter(pk=wanted).first()
    if operation is None:
        return _not_found()
    return Status(*answer(operation, now=default_engine().clock()))


@api.post(
    "/refund-groups",
    response={200: GroupAnswer, 202: GroupAnswer},
    summary="Ask for several refunds that belong together",
    openapi_extra=CONFLICT,
)
@decorate_view(json_only)
def ask_for_group(request: HttpRequest, wish: GroupRequest) -> Any:
    """Open one operation for each payment, all or none, send each with its own key.

    Each part then stands for itself; asking again with the same parts is safe.
    """
    engine = default_engine()
    operations = request_group(
        engine=engine,
        wishes=[
            RefundInput(
                account=wish.account,
                order_id=wish.order_id,
                reference=part.reference,
                amount=part.amount,
                currency=wish.currency,
                payment=part.payment,
                customer_account=wish.customer_account,
                reason=wish.reason,
            )
            for part in wish.refunds
        ],
        asker=_asker(request, wish, wish.client_request_token),
    )
    return Status(*group_answer(operations, now=engine.clock()))


@api.get(
    "/refund-groups/{group}",
    response={200: GroupAnswer, 202: GroupAnswer},
    summary="How the parts of a group stand",
)
def read_group(request: HttpRequest, group: str) -> Any:
    """The same answer as it stands now. Never sends."""
    try:
        wanted = uuid.UUID(group)
    except ValueError:
        return _not_found()
    operations = list(_reached(request).filter(group=wanted).order_by("created_at"))
    if not operations:
        return _not_found()
    return Status(*group_answer(operations, now=default_engine().clock()))


_NEVER = ["PUT", "PATCH", "DELETE", "OPTIONS"]
_NOT_POST = ["GET", "HEAD", *_NEVER]
_NOT_GET = ["HEAD", "POST", *_NEVER]
_UNLISTED: dict[str, Any] = {"auth": None, "include_in_schema": False}


@api.api_operation(_NOT_POST, "/refunds", **_UNLISTED)
@api.api_operation(_NOT_POST, "/refund-groups", **_UNLISTED)
def takes_post(request: HttpRequest) -> HttpResponse:
    """What is asked for is posted."""
    return wrong_method(request, "POST")


@api.api_operation(_NOT_GET, "/refunds/{operation_id}", **_UNLISTED)
def operation_takes_get(request: HttpRequest, operation_id: str) -> HttpResponse:
    """How an operation stands is read."""
    return wrong_method(request, "GET")


@api.api_operation(_NOT_GET, "/refund-groups/{group}", **_UNLISTED)
def group_takes_get(request: HttpRequest, group: str) -> HttpResponse:
    """How a group stands is read."""
    return wrong_method(request, "GET")


_rest = Router()


@_rest.api_operation(["GET", *_NOT_GET], "/{path:unknown}", **_UNLISTED)
def nothing_here(request: HttpRequest, unknown: str) -> HttpResponse:
    """Every other address below this API."""
    return problem(404, "not_found", "There is nothing at this address.")


api.add_router("", notices_router)
# The last one: addresses are tried in their order.
api.add_router("", _rest)


def _reached(request: HttpRequest) -> QuerySet[Operation]:
    """The operations of the accounts that the key is for."""
    rows = Operation.objects.select_related("account")
    return rows.filter(**narrowed(key_of(request).accounts))


def _not_found() -> HttpResponse:
    return problem(404, "not_found", "There is no operation with this id.")


def _asker(request: HttpRequest, wish: RefundRequest | GroupRequest, token: str) -> Asker:
    return Asker(
        actor=caller(request),
        api_key=key_of(request),
        token=token,
        tool_call_id=wish.tool_call_id,
        agent_run_id=wish.agent_run_id,
    )


@api.exception_handler(InProgress)
def _in_progress(request: HttpRequest, error: InProgress) -> HttpResponse:
    return problem(
        409,
        "in_progress",
        "This refund is being sent right now by another request. Nothing more was sent; ask "
        "again after the given time.",
        retry_after_s=error.retry_after_s,
        operation_id=str(error.operation_id),
    )


@api.exception_handler(AccountOutOfReach)
def _out_of_reach(request: HttpRequest, error: AccountOutOfReach) -> HttpResponse:
    return problem(
        403,
        "account_out_of_reach",
        "This key is for other accounts. Nothing was recorded or sent.",
        errors=[{"field": "account", "message": "is not one that this key is for"}],
    )


@api.exception_handler(ReadOnlyKey)
def _read_only(request: HttpRequest, error: ReadOnlyKey) -> HttpResponse:
    return problem(
        403, "read_only_key", "This key only reads. Nothing was recorded or sent.", errors=[]
    )


@api.exception_handler(ConflictingOperation)
def _conflicting(request: HttpRequest, error: ConflictingOperation) -> HttpResponse:
    # It may be of an account that the key is not for.
    is_theirs = within(key_of(request).accounts, error.operation.account_id)
    named: dict[str, Any] = {"operation_id": str(error.operation.pk)} if is_theirs else {}
    return problem(
        409,
        "conflicting_operation",
        "The same order and reference has a refund that this one could be the repetition of: an "
        "unresolved one with another amount, currency, customer or payment; one made within a day "
        "for another customer or payment; one on another account that has not failed; or one that "
        "turned up after it was given up. Nothing was sent. Wait for its end, or give another "
        "reference.",
        **named,
    )


@api.exception_handler(ExposureReached)
def _exposure_reached(request: HttpRequest, error: ExposureReached) -> HttpResponse:
    return problem(
        409,
        "exposure_limit",
        f"Too much money of this {error.limit.scope} is in refunds that nobody can confirm yet. "
        "New refunds are refused until people have settled some. Nothing was recorded or sent; "
        "tell the customer that it takes longer.",
        retry_after_s=300,
        scope=str(error.limit.scope),
    )


@api.exception_handler(ReusedWithOtherInput)
def _reused(request: HttpRequest, error: ReusedWithOtherInput) -> HttpResponse:
    field = "client_request_token" if error.what == "token" else "tool_call_id"
    return field_problem(field, str(error), operation_id=str(error.operation.pk))


@api.exception_handler(InputRefused)
def _input_refused(request: HttpRequest, error: InputRefused) -> HttpResponse:
    return field_problem(error.field, str(error))


@api.exception_handler(SubscriptionRefused)
def _subscription_refused(request: HttpRequest, error: SubscriptionRefused) -> HttpResponse:
    return field_problem(error.field or "body", str(error))


@api.exception_handler(PaymentUnreadable)
def _payment_unreadable(request: HttpRequest, error: PaymentUnreadable) -> HttpResponse:
    log.warning("payment_unreadable", error=str(error))
    return problem(
        503,
        "payment_unreadable",
        "The payment can't be read at the provider right now. Nothing was recorded or sent; "
        "asking again is safe.",
        retry_after_s=5,
    )


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    errors = [_field_error(item) for item in error.errors]
    return problem(
        422,
        "invalid_input",
        f"{errors[0]['field']}: {errors[0]['message']}",
        errors=errors,
    )


def _field_error(item: dict[str, Any]) -> dict[str, str]:
    message = str(item.get("msg", "is not valid")).removeprefix("Value error, ")
    place = [str(part) for part in item.get("loc", ())]
    field = place[-1] if len(place) > 2 or (place and place[0] != "body") else "body"
    if field == "body" and message.startswith("amount: "):
        field, message = "amount", message.removeprefix("amount: ")
    return {"field": field, "message": message}


@api.exception_handler(AuthenticationError)
def _unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return problem(401, "unauthorized", "A valid API key is needed: Authorization: Bearer …")


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, NamedTwice):
        return field_problem(error.__cause__.field, "is named more than once.")
    if error.status_code == 400:
        return problem(
            400,
            "invalid_json",
            "The body is not JSON.",
            errors=[{"field": "body", "message": "is not JSON"}],
        )
    return problem(error.status_code, "refused", str(error))


@api.exception_handler(UnreadablePostError)
def _body_incomplete(request: HttpRequest, error: UnreadablePostError) -> HttpResponse:
    return problem(
        400,
        "body_incomplete",
        "The body ended early or came too slowly. Nothing was recorded or sent.",
        errors=[{"field": "body", "message": "ended early"}],
    )


@api.exception_handler(OperationalError)
@api.exception_handler(InterfaceError)
@api.exception_handler(DatabaseError)
def _store_down(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("store_unavailable", exc_info=error)
    return problem(
        503,
        "store_unavailable",
        "The store is down. Asking again is safe: whatever was written down keeps its key.",
        retry_after_s=5,
    )


@api.exception_handler(Exception)
def _unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("unexpected_error", exc_info=error)
    return problem(
        503,
        "unexpected_error",
        "Something went wrong here. Asking again is safe: whatever was written down keeps its key.",
        retry_after_s=5,
    )
