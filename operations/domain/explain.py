"""What we know of an operation, in plain sentences made from its evidence.

Sentences are words with named places, so that they can be translated and so that text from
outside stays apart from ours. While an operation is unknown, no sentence says how it ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from operations.domain.answers import AnswerKind
from operations.domain.classify import Doubt, Outcome
from operations.domain.known import Known, LookedUp, Sent
from operations.domain.sentences import Outside, Sentence, say
from operations.domain.statuses import SETTLED, Attention, Status


class Mark(StrEnum):
    """What kind of thing a line speaks of; the page draws an icon for it."""

    SENT = "send"
    REPEATS = "retry"
    LOOKED = "search"
    TOLD = "webhook"
    PERSON = "person"
    WINDOW = "lock"
    OPEN_POINT = "unknown"
    WARNING = "warn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing we know, and the event of the timeline that it comes from."""

    mark: Mark
    sentence: Sentence
    source: Sentence | None = None
    anchor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The headline, and the lines that carry it."""

    lead: Sentence
    lines: tuple[Line, ...]


def explain(known: Known) -> Explanation:
    """Say what is known, and never more."""
    lines = (
        *_about_sends(known),
        *_about_lookups(known),
        *_about_events(known),
        *_about_attention(known),
        *_about_people(known),
        *_about_window(known),
        *_open_point(known),
    )
    return Explanation(lead=_lead(known), lines=lines)


def _lead(known: Known) -> Sentence:
    money, provider = known.money, known.provider
    if Attention.DUPLICATE_REFUND in known.attention:
        return say("Two refunds at {provider} carry this operation.", provider=provider)
    match known.status:
        case Status.OPEN if known.sends and known.sends[-1].outcome is None:
            return say("A send of {money} is in flight.", money=money)
        case Status.OPEN:
            return say(
                "{money} is not confirmed yet. It may be sent again with the same key.",
                money=money,
            )
        case Status.PROCESSING:
            return say(
                "{provider} has the refund of {money}. How it ends is not known yet.",
                provider=provider,
                money=money,
            )
        case Status.UNKNOWN:
            return say("Nobody knows yet whether {money} moved.", money=money)
        case Status.SUCCEEDED:
            return say("The refund of {money} succeeded.", money=money)
        case Status.FAILED if Attention.CONFLICT in known.attention:
            return say("Recorded as failed, but a refund of {money} was seen since.", money=money)
        case Status.FAILED if Attention.FAILED_AFTER_SUCCESS in known.attention:
            return say("The refund of {money} failed after it had succeeded.", money=money)
        case Status.FAILED:
            return say("The refund of {money} did not happen.", money=money)
        case _:
            assert_never(known.status)


def _about_sends(known: Known) -> list[Line]:
    sends = known.sends
    if not sends:
        return [Line(mark=Mark.SENT, sentence=say("Nothing was sent yet."))]
    first = Line(
        mark=Mark.SENT,
        sentence=say("We sent this refund once.")
        if len(sends) == 1
        else say("We sent this refund {count} times with one key.", count=len(sends)),
        source=say("Attempt {n}", n=1)
        if len(sends) == 1
        else say("Attempts 1 to {n}", n=len(sends)),
        anchor=f"attempt-{sends[0].number}",
    )
    telling = [send for send in sends if send.outcome is Outcome.INDETERMINATE] or list(sends)
    if known.status in SETTLED or known.status is Status.PROCESSING:
        telling = list(sends)
    return [first, _about_answer(known, telling[-1])]


def _about_answer(known: Known, send: Sent) -> Line:
    return Line(
        mark=Mark.REPEATS if send.doubt is Doubt.FROZEN else Mark.SENT,
        sentence=_answer(known, send),
        source=say("Attempt {n}", n=send.number),
        anchor=f"attempt-{send.number}",
    )


def _answer(known: Known, send: Sent) -> Sentence:
    provider, status, at = known.provider, send.http_status or 0, send.at
    match send.outcome:
        case None:
            return say("It left at {at}; no answer has come yet.", at=at)
        case Outcome.ACCEPTED:
            return say(
                "{provider} answered with refund {refund} at {at}.",
                provider=provider, refund=Outside(send.refund_id), at=at,
            )  # fmt: skip
        case Outcome.REFUSED if send.doubt is Doubt.UNSAFE_REFUSAL:
            return _doubtful_refusal(known, send)
        case Outcome.REFUSED:
            return say(
                "{provider} refused it with {status} at {at}: {message}",
                provider=provider,
                status=status,
                at=at,
                message=Outside(known.failure_message)
                if known.failure_message
                else say("no reason was given"),
            )
        case Outcome.NOT_EXECUTED:
            return say("The send of {at} was not carried out.", at=at)
        case Outcome.INDETERMINATE:
            return _doubtful_answer(provider, send)
        case _:
            assert_never(send.outcome)


def _doubtful_refusal(known: Known, send: Sent) -> Sentence:
    """A refusal that may come from an earlier send of ours, or from a refund made before."""
    earlier = (sent.outcome for sent in known.sends if sent.number < send.number)
    if Outcome.INDETERMINATE not in earlier:
        return say(
            "{provider} refused it with {status} at {at}, in a way that does not tell whether the "
            "refund exists.",
            provider=known.provider, status=send.http_status or 0, at=send.at,
        )  # fmt: skip
    return say(
        "{provider} refused a later send with {status} at {at}. "
        "That says nothing about the first one.",
        provider=known.provider, status=send.http_status or 0, at=send.at,
    )  # fmt: skip


def _doubtful_answer(provider: str, send: Sent) -> Sentence:
    if send.doubt is Doubt.FROZEN:
        return say(
            "{provider} answered {status} at {at} and will repeat that answer.",
            provider=provider, status=send.http_status or 0, at=send.at,
        )  # fmt: skip
    if send.doubt is Doubt.INTERRUPTED or send.kind is AnswerKind.INTERRUPTED:
        return say(
            "Our process went away during the send of {at}. The answer was not saved.", at=send.at
        )
    if send.kind is AnswerKind.CONNECTION_LOST:
        return say("The answer to the send of {at} was lost. A timeout proves nothing.", at=send.at)
    if send.doubt is Doubt.UNREADABLE:
        return say("The answer to the send of {at} could not be read.", at=send.at)
    return say(
        "{provider} answered {status} at {at}. The refund may exist all the same.",
        provider=provider, status=send.http_status or 0, at=send.at,
    )  # fmt: skip


def _about_lookups(known: Known) -> list[Line]:
    if not known.lookups:
        return []
    last = known.lookups[-1]
    return [
        Line(
            mark=Mark.LOOKED,
            sentence=_looked(known, last),
            source=say("Look-up {n}", n=last.number),
            anchor=f"lookup-{last.number}",
        )
    ]


def _looked(known: Known, last: LookedUp) -> Sentence:
    match last.result:
        case "found":
            return say(
                "Refund {refund} with our reference was on the payment at {at}.",
                refund=Outside(last.refund_id), at=last.at,
            )  # fmt: skip
        case "absent" | "unproven":
            return say("No refund with our reference was found on the payment at {at}.", at=last.at)
        case "incomplete":
            return say(
                "The payment's refunds could not be read to the end at {at}. "
                "Ours was not among those seen.",
                at=last.at,
            )
        case _:
            return say("{provider} could not be read at {at}.", provider=known.provider, at=last.at)


def _about_events(known: Known) -> list[Line]:
    if not known.events:
        return []
    last = known.events[-1]
    # A status word from outside must not speak while the operation is unknown.
    tells = known.status is not Status.UNKNOWN and Attention.MISMATCH not in known.attention
    return [
        Line(
            mark=Mark.TOLD,
            sentence=say(
                "A webhook of {at} reports refund {refund} as {status}.",
                at=last.at, refund=Outside(last.refund_id), status=Outside(last.refund_status),
            )
            if tells
            else say(
                "A webhook of {at} speaks of refund {refund}.",
                at=last.at, refund=Outside(last.refund_id),
            ),
            source=say("Webhook"),
            anchor=last.anchor,
        )
    ]  # fmt: skip


_ATTENTION: Mapping[Attention, str] = {
    Attention.CONFLICT: "Two sources disagree. Both stay visible; nothing was overwritten.",
    Attention.DUPLICATE_REFUND: "The customer may have been paid twice.",
    Attention.MISMATCH: "A refund names this operation but differs from what we sent.",
    Attention.FAILED_AFTER_SUCCESS: "The money came back. The customer does not have it.",
    Attention.DISPUTED: "The payment is disputed. The dispute may return the money.",
    Attention.CONFIGURATION: "{provider} did not accept our key or account. Nothing was executed.",
}


def _about_attention(known: Known) -> list[Line]:
    return [
        Line(
            mark=Mark.WARNING,
            sentence=Sentence(text, {"provider": known.provider}),
            source=say("What raised it") if flag in known.raised_by else None,
            anchor=known.raised_by.get(flag, ""),
        )
        for flag, text in _ATTENTION.items()
        if flag in known.attention
    ]


def _about_people(known: Known) -> list[Line]:
    if not known.statements or known.status not in SETTLED:
        return []
    last = known.statements[-1]
    return [
        Line(
            mark=Mark.PERSON,
            sentence=say("{by} closed it at {at}.", by=Outside(last.by), at=last.at),
            source=say("Evidence and note"),
            anchor=last.anchor,
        )
    ]


def _about_window(known: Known) -> list[Line]:
    if known.status is not Status.UNKNOWN or not known.window_closed:
        return []
    closes = known.key_window_closes_at or known.now
    sentence = say("The key window closed at {at}.", at=closes)
    if not known.sends:
        return [Line(mark=Mark.WINDOW, sentence=sentence)]
    # It is counted from the first send.
    first = known.sends[0].number
    source = say("Attempt {n}", n=first)
    return [Line(mark=Mark.WINDOW, sentence=sentence, source=source, anchor=f"attempt-{first}")]


def _open_point(known: Known) -> list[Line]:
    if known.status is not Status.UNKNOWN:
        return []
    looked = known.lookups[-1] if known.lookups else None
    if looked is None:
        nobody = say("Nobody has looked at {provider} yet.", provider=known.provider)
        return [Line(mark=Mark.OPEN_POINT, sentence=nobody)]
    if looked.result == "absent" and known.window_closed:
        sentence = say("A late refund is unlikely, not impossible.")
    elif looked.result == "unproven":
        sentence = say(
            "{provider} does not list every refund. It may exist all the same.",
            provider=known.provider,
        )
    elif looked.result == "found" or Attention.MISMATCH in known.attention:
        sentence = say("It stays unknown until somebody closes it.")
    else:
        sentence = say("It can still appear.")
    return [
        Line(
            mark=Mark.OPEN_POINT,
            sentence=sentence,
            source=say("Look-up {n}", n=looked.number),
            anchor=f"lookup-{looked.number}",
        )
    ]
