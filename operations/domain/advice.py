"""What a person might do next, and what a customer can be told. The default is harmless."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from operations.domain.money import Money
from operations.domain.sentences import Outside, Sentence, Value, gettext_noop, say
from operations.domain.statuses import Attention, Status, UnknownReason


class Step(StrEnum):
    """A next step. Only looking up is ever offered as the one prominent button."""

    LOOK_UP = "look_up"
    SECOND_PERSON = "second_person"
    REVIEW_REFUNDS = "review_refunds"
    COMPARE = "compare"
    CLOSE_FAILED = "close_failed"
    CHECK_ACCOUNT = "check_account"
    TELL_CUSTOMER = "tell_customer"
    WAIT = "wait"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the advice rests on.

    `last_lookup` is the result of the newest look-up, "" for none; `absent` only where the
    provider's list can show an absence. `absence_holds`: it lacked nothing that can be checked.
    """

    status: Status
    attention: frozenset[Attention]
    proposal_waits: bool
    window_closed: bool
    last_lookup: str
    lookups_made: int
    absence_holds: bool
    next_check_at: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Advice:
    """A step, what it is called (a msgid), and why."""

    step: Step
    label: str
    why: Sentence


def advise(situation: Situation) -> Advice:
    """The step that fits the situation."""
    if situation.proposal_waits:
        return Advice(
            Step.SECOND_PERSON,
            gettext_noop("A second person decides"),
            say("A proposal is waiting"),
        )
    flagged = _for_attention(situation.attention)
    if flagged is not None:
        return flagged
    match situation.status:
        case Status.UNKNOWN:
            return _for_unknown(situation)
        case Status.OPEN | Status.PROCESSING:
            return Advice(Step.WAIT, gettext_noop("Wait"), _next_check(situation))
        case Status.SUCCEEDED | Status.FAILED:
            return Advice(Step.NOTHING, gettext_noop("Nothing to do"), say("It is settled"))
        case _:
            assert_never(situation.status)


def _for_attention(attention: frozenset[Attention]) -> Advice | None:
    if Attention.DUPLICATE_REFUND in attention:
        return Advice(
            Step.REVIEW_REFUNDS,
            gettext_noop("Review both refunds"),
            say("Two refunds on one payment"),
        )
    if Attention.CONFLICT in attention:
        return Advice(
            Step.REVIEW_REFUNDS, gettext_noop("Review the conflict"), say("Two sources disagree")
        )
    if Attention.MISMATCH in attention:
        return Advice(
            Step.COMPARE, gettext_noop("Compare the refund"), say("It differs from what we sent")
        )
    if Attention.FAILED_AFTER_SUCCESS in attention:
        return Advice(
            Step.TELL_CUSTOMER, gettext_noop("Tell the customer"), say("The money came back")
        )
    if Attention.CONFIGURATION in attention:
        return Advice(
            Step.CHECK_ACCOUNT, gettext_noop("Check key and account"), say("Nothing was executed")
        )
    if Attention.DISPUTED in attention:
        return Advice(
            Step.LOOK_UP, gettext_noop("Look up again"), say("The dispute may return the money")
        )
    return None


def _for_unknown(situation: Situation) -> Advice:
    if situation.window_closed and situation.last_lookup == "absent" and situation.absence_holds:
        return Advice(
            Step.CLOSE_FAILED,
            gettext_noop("Close as failed"),
            say("Absent in the last of {count} look-ups", count=situation.lookups_made),
        )
    return Advice(Step.LOOK_UP, gettext_noop("Look up again"), _next_check(situation))


def _next_check(situation: Situation) -> Sentence:
    if situation.next_check_at is None:
        return say("No automatic look-up is planned")
    if situation.next_check_at <= situation.now:
        return say("An automatic look-up is due")
    return say("Next automatic look-up at {at}", at=situation.next_check_at)


def customer_message(*, status: Status, contested: bool, money: Money, order_id: str) -> Sentence:
    """What a customer can be told now. It promises nothing that is not known.

    `contested`: it is recorded as failed, and yet a refund of it may be there.
    """
    values: dict[str, Value] = {"money": money, "order": Outside(order_id)}
    match status:
        case Status.OPEN | Status.UNKNOWN:
            text = gettext_noop(
                "We have asked for your refund of {money} for order {order}. Our payment provider "
                "has not confirmed it yet. You do not need to do anything."
            )
        case Status.PROCESSING:
            text = gettext_noop(
                "Your refund of {money} for order {order} is with our payment provider. It is not "
                "finished yet. You do not need to do anything."
            )
        case Status.SUCCEEDED:
            text = gettext_noop(
                "Your refund of {money} for order {order} has been made. Depending on your bank "
                "it can take some days until you see it."
            )
        case Status.FAILED if contested:
            text = gettext_noop(
                "We are checking your refund of {money} for order {order}. You do not need to do "
                "anything."
            )
        case Status.FAILED:
            text = gettext_noop(
                "We could not make your refund of {money} for order {order}. Our support team can "
                "help you further."
            )
        case _:
            assert_never(status)
    return Sentence(text, values)


_NOT_SENT: Mapping[UnknownReason, str] = {
    UnknownReason.SERVER_ERROR: gettext_noop(
        "Sending again is off. {provider} would repeat its answer for this key."
    ),
    UnknownReason.BUDGET_SPENT: gettext_noop("Sending again is off. All sends are used up."),
    UnknownReason.DEADLINE_PASSED: gettext_noop(
        "Sending again is off. The time for sending is over."
    ),
    UnknownReason.KEY_WINDOW_CLOSED: gettext_noop(
        "Sending again is off. {provider} may have forgotten the key, so a send could make a "
        "second refund."
    ),
    UnknownReason.KEY_RETENTION_UNCLEAR: gettext_noop(
        "Sending again is off. Nobody states how long {provider} remembers the key, so a send "
        "could make a second refund."
    ),
    UnknownReason.INTERRUPTED: gettext_noop(
        "Sending again is off. No safe send is left after the interrupted one."
    ),
    UnknownReason.UNSAFE_REFUSAL: gettext_noop(
        "Sending again is off. {provider} refused in a way that does not tell whether the refund "
        "exists."
    ),
    UnknownReason.UNREADABLE_ANSWER: gettext_noop(
        "Sending again is off. The answer could not be read, so another send tells nothing."
    ),
    UnknownReason.REOPENED: gettext_noop(
        "Sending again is off. People took its end back; {provider} may have forgotten the key."
    ),
}


def why_not_sent(reason: UnknownReason | None, provider: str) -> Sentence | None:
    """Why an unknown operation is not sent again; None when it is not unknown."""
    if reason is None:
        return None
    return Sentence(_NOT_SENT[reason], {"provider": provider})
