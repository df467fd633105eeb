"""What the API takes and answers about subscriptions and deliveries."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from ninja import Schema
from pydantic import ConfigDict, Field, StrictInt, StrictStr

from operations.api.schemas import ShortText, Text
from operations.domain.addresses import MAX_LENGTH
from operations.domain.notices import NoticeType


class SubscriptionRequest(Schema):
    """An address that shall be told."""

    model_config = ConfigDict(extra="forbid")

    address: StrictStr = Field(
        min_length=1, max_length=MAX_LENGTH, description="An https address that can be reached."
    )
    name: ShortText = Field("", max_length=100)
    types: list[NoticeType] = Field(
        default_factory=list, max_length=10, description="Empty: every type."
    )
    account: Text = Field("", description="Which of our provider accounts; empty: all of them.")


class RollRequest(Schema):
    """How the old secret ends."""

    model_config = ConfigDict(extra="forbid")

    keep_old_s: StrictInt = Field(
        86_400,
        ge=0,
        le=7 * 86_400,
        description="How long the old secret signs beside the new one, in seconds. 0: not at all.",
    )


class DisableRequest(Schema):
    """Why it is told nothing more."""

    model_config = ConfigDict(extra="forbid")

    reason: ShortText = ""


class SubscriptionAnswer(Schema):
    """One subscription, without its secret."""

    id: UUID
    name: str
    address: str
    types: list[str]
    account: str | None
    created_at: datetime
    disabled_at: datetime | None
    disabled_reason: str | None
    failures: int
    failing_since: datetime | None
    previous_secret_until: datetime | None


class SubscriptionWithSecret(SubscriptionAnswer):
    """The only answer that ever shows the secret."""

    secret: str


class SubscriptionList(Schema):
    """Newest first. `next_after` is `after` of the next page."""

    subscriptions: list[SubscriptionAnswer]
    next_after: str | None


class TryAnswer(Schema):
    """One HTTP request. Without `finished_at` nobody knows how it ended."""

    number: int
    started_at: datetime
    finished_at: datetime | None
    duration_ms: int | None
    http_status: int | None
    response: str
    error: str


class DeliveryAnswer(Schema):
    """One notice to one subscription. `message_id` is the header `webhook-id`."""

    id: int
    message_id: str
    subscription: UUID
    operation_id: UUID
    type: str
    occurred_at: datetime
    state: Literal["waiting", "delivered", "failed"]
    next_try_at: datetime | None
    ended_at: datetime | None
    tries: list[TryAnswer]


class DeliveryList(Schema):
    """Newest first. `next_after` is `after` of the next page."""

    deliveries: list[DeliveryAnswer]
    next_after: str | None
