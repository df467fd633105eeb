"""What the API takes and answers."""

import unicodedata
from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from ninja import Schema
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    model_validator,
)

from operations.domain.money import CURRENCIES, amount_problem


def _plain(text: str) -> str:
    """Text that a database, a log and a page can hold: no control characters, whole Unicode."""
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise ValueError("must not contain control characters or broken Unicode")
    return text


def _name(text: str) -> str:
    """A name that tells two wishes apart, in one spelling: models add blanks that mean nothing.

    Characters that cannot be seen are refused, so that two names that look alike are alike.
    """
    if any(unicodedata.category(character) == "Cf" for character in text):
        raise ValueError("must not contain characters that cannot be seen")
    return unicodedata.normalize("NFC", _plain(text)).strip()


def _required_name(text: str) -> str:
    name = _name(text)
    if not name:
        raise ValueError("must not be empty")
    return name


def _currency(text: str) -> str:
    code = text.lower()
    if code not in CURRENCIES:
        raise ValueError("is not a currency that can be refunded")
    return code


Text = Annotated[StrictStr, AfterValidator(_plain), Field(max_length=255)]
ShortText = Annotated[StrictStr, AfterValidator(_plain), Field(max_length=240)]
Name = Annotated[StrictStr, AfterValidator(_name), Field(max_length=255)]
RequiredName = Annotated[
    StrictStr, AfterValidator(_required_name), Field(min_length=1, max_length=255)
]

Currency = Annotated[
    StrictStr,
    AfterValidator(_currency),
    Field(min_length=3, max_length=3, description="ISO code."),
]
PaymentId = Annotated[
    StrictStr,
    Field(
        min_length=3,
        max_length=255,
        pattern=r"^[A-Za-z0-9_]+$",
        description="The charge (ch_…) or payment intent (pi_…) to refund.",
    ),
]
AnswerStatus = Literal["refunded", "processing", "refused", "unconfirmed", "checking"]


class RefundRequest(Schema):
    """One refund to be made.

    `amount` is an integer in the currency's Stripe unit (cents for USD, yen for JPY).
    """

    model_config = ConfigDict(extra="forbid")

    order_id: RequiredName
    amount: StrictInt = Field(gt=0, description="In the currency's Stripe unit.")
    currency: Currency
    payment: PaymentId
    reference: Name = Field(
        "",
        description=("A return or line id. Two equal refunds of one order are told apart by it."),
    )
    customer_account: Name = ""
    client_request_token: Text = Field(
        "", description="Your own name for this wish; or the header Idempotency-Key."
    )
    tool_call_id: Text = ""
    agent_run_id: Text = ""
    reason: Annotated[StrictStr, AfterValidator(_plain), Field(max_length=500)] = ""
    account: Text = Field("", description="Which of our provider accounts; empty: the default.")

    @model_validator(mode="after")
    def _amount_fits_the_currency(self) -> Self:
        text = amount_problem(self.amount, self.currency)
        if text:
            raise ValueError(f"amount: {text}")
        return self


class RefundAnswer(Schema):
    """How the operation stands. While it is unknown nothing here says succeeded or failed."""

    operation_id: UUID
    status: AnswerStatus
    attempts: int
    provider_object_id: str | None
    note: str
    customer_message: str
    retry_after_s: int | None
    next_check_at: datetime | None
    code: str | None = None
    message: str | None = None


class GroupPart(Schema):
    """One payment's share of a refund that several payments bear."""

    model_config = ConfigDict(extra="forbid")

    payment: PaymentId
    amount: StrictInt = Field(gt=0, description="In the currency's Stripe unit.")
    reference: Name = Field("", description="Empty: told apart by its payment.")


class GroupRequest(Schema):
    """Several refunds that belong together: an order that was paid with two payments, say."""

    model_config = ConfigDict(extra="forbid")

    order_id: RequiredName
    currency: Currency
    refunds: list[GroupPart] = Field(min_length=1, max_length=20)
    customer_account: Name = ""
    client_request_token: ShortText = ""
    tool_call_id: ShortText = ""
    agent_run_id: Text = ""
    reason: Annotated[StrictStr, AfterValidator(_plain), Field(max_length=500)] = ""
    account: Text = ""

    @model_validator(mode="after")
    def _amounts_fit_the_currency(self) -> Self:
        for part in self.refunds:
            text = amount_problem(part.amount, self.currency)
            if text:
                raise ValueError(f"amount: {text}")
        return self


class GroupAnswer(Schema):
    """How each part stands. `status` is the one that is furthest from `refunded`."""

    group: UUID
    status: AnswerStatus
    refunds: list[RefundAnswer]
