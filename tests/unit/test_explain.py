"""What is known, in words: never more than the evidence says."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.domain.advice import (
    Situation,
    Step,
    advise,
    customer_message,
    why_not_sent,
)
from operations.domain.answers import AnswerKind
from operations.domain.classify import Doubt, Outcome
from operations.domain.explain import Mark, explain
from operations.domain.known import Known, LookedUp, Sent, Stated, Told
from operations.domain.money import Money
from operations.domain.sentences import Outside, say
from operations.domain.statuses import Attention, Status, UnknownReason

NOW = datetime(2026, 11, 30, 9, 53, 40, tzinfo=UTC)
SENT_AT = datetime(2026, 11, 30, 9, 41, 7, tzinfo=UTC)

FIVE_HUNDRED = Sent(
    number=1,
    at=SENT_AT,
    outcome=Outcome.INDETERMINATE,
    doubt=Doubt.FROZEN,
    kind=AnswerKind.RESPONSE,
    http_status=500,
)
ABSENT = LookedUp(number=2, at=SENT_AT + timedelta(minutes=11), result="absent", others=1)
UNKNOWN = Known(
    provider="Stripe",
    money=Money(3_800, "usd"),
    status=Status.UNKNOWN,
    now=NOW,
    unknown_reason=UnknownReason.SERVER_ERROR,
    key_window_closes_at=NOW + timedelta(hours=23),
    sends=[FIVE_HUNDRED],
    lookups=[ABSENT],
)


def words(known: Known) -> list[str]:
    explanation = explain(known)
    return [str(explanation.lead), *(str(line.sentence) for line in explanation.lines)]


def test_an_unknown_refund_in_words() -> None:
    assert words(UNKNOWN) == [
        "Nobody knows yet whether 38.00 USD moved.",
        "We sent this refund once.",
        "Stripe answered 500 at 09:41:07 and will repeat that answer.",
        "No refund with our reference was found on the payment at 09:52:07.",
        "It can still appear.",
    ]


def test_every_claim_names_the_event_it_comes_from() -> None:
    lines = explain(UNKNOWN).lines

    assert [(str(line.source), line.anchor) for line in lines if line.source] == [
        ("Attempt 1", "attempt-1"),
        ("Attempt 1", "attempt-1"),
        ("Look-up 2", "lookup-2"),
        ("Look-up 2", "lookup-2"),
    ]


def test_several_sends_with_one_key() -> None:
    sends = [replace(FIVE_HUNDRED, number=n) for n in (1, 2, 3)]

    explanation = explain(replace(UNKNOWN, sends=sends))

    assert str(explanation.lines[0].sentence) == "We sent this refund 3 times with one key."
    assert str(explanation.lines[0].source) == "Attempts 1 to 3"


@pytest.mark.parametrize(
    ("send", "said"),
    [
        (
            replace(FIVE_HUNDRED, doubt=Doubt.NONE, kind=AnswerKind.CONNECTION_LOST),
            "The answer to the send of 09:41:07 was lost. A timeout proves nothing.",
        ),
        (
            replace(FIVE_HUNDRED, doubt=Doubt.INTERRUPTED, kind=AnswerKind.INTERRUPTED),
            "Our process went away during the send of 09:41:07. The answer was not saved.",
        ),
        (
            replace(FIVE_HUNDRED, doubt=Doubt.UNREADABLE),
            "The answer to the send of 09:41:07 could not be read.",
        ),
        (
            replace(FIVE_HUNDRED, doubt=Doubt.NONE, http_status=503),
            "Stripe answered 503 at 09:41:07. The refund may exist all the same.",
        ),
        (
            replace(
                FIVE_HUNDRED,
                outcome=Outcome.REFUSED,
                doubt=Doubt.UNSAFE_REFUSAL,
                http_status=400,
            ),
            "Stripe refused it with 400 at 09:41:07, in a way that does not tell whether the "
            "refund exists.",
        ),
    ],
)
def test_a_doubtful_answer_in_words(send: Sent, said: str) -> None:
    assert said in words(replace(UNKNOWN, sends=[send]))


def test_a_refusal_of_a_later_send_is_told_as_one() -> None:
    refused = replace(
        FIVE_HUNDRED,
        number=2,
        outcome=Outcome.REFUSED,
        doubt=Doubt.UNSAFE_REFUSAL,
        http_status=400,
    )
    lost = replace(FIVE_HUNDRED, doubt=Doubt.NONE, kind=AnswerKind.CONNECTION_LOST)

    said = words(replace(UNKNOWN, status=Status.PROCESSING, sends=[lost, refused]))

    assert (
        "Stripe refused a later send with 400 at 09:41:07. That says nothing about the first one."
    ) in said


def test_the_doubtful_send_is_told_not_the_last_one() -> None:
    lost = replace(FIVE_HUNDRED, doubt=Doubt.NONE, kind=AnswerKind.CONNECTION_LOST)
    busy = replace(FIVE_HUNDRED, number=2, outcome=Outcome.NOT_EXECUTED, http_status=429)

    said = words(replace(UNKNOWN, sends=[lost, busy]))

    assert "The answer to the send of 09:41:07 was lost. A timeout proves nothing." in said


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({}, "It can still appear."),
        ({"lookups": []}, "Nobody has looked at Stripe yet."),
        ({"key_window_closes_at": NOW}, "A late refund is unlikely, not impossible."),
        (
            {"key_window_closes_at": NOW, "lookups": [replace(ABSENT, result="incomplete")]},
            "It can still appear.",
        ),
        (
            {"attention": frozenset([Attention.MISMATCH])},
            "It stays unknown until somebody closes it.",
        ),
    ],
)
def test_what_stays_open_is_said_last(changes: dict[str, object], last: str) -> None:
    assert words(replace(UNKNOWN, **changes))[-1] == last  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "lead"),
    [
        ({"status": Status.SUCCEEDED}, "The refund of 38.00 USD succeeded."),
        ({"status": Status.FAILED}, "The refund of 38.00 USD did not happen."),
        (
            {"status": Status.FAILED, "attention": frozenset([Attention.CONFLICT])},
            "Recorded as failed, but a refund of 38.00 USD was seen since.",
        ),
        (
            {"status": Status.FAILED, "attention": frozenset([Attention.FAILED_AFTER_SUCCESS])},
            "The refund of 38.00 USD failed after it had succeeded.",
        ),
        (
            {"status": Status.SUCCEEDED, "attention": frozenset([Attention.DUPLICATE_REFUND])},
            "Two refunds at Stripe carry this operation.",
        ),
        (
            {"status": Status.PROCESSING},
            "Stripe has the refund of 38.00 USD. How it ends is not known yet.",
        ),
        (
            {"status": Status.OPEN},
            "38.00 USD is not confirmed yet. It may be sent again with the same key.",
        ),
        (
            {"status": Status.OPEN, "sends": [replace(FIVE_HUNDRED, outcome=None)]},
            "A send of 38.00 USD is in flight.",
        ),
    ],
)
def test_the_headline_of_every_status(changes: dict[str, object], lead: str) -> None:
    assert words(replace(UNKNOWN, **changes))[0] == lead  # type: ignore[arg-type]


def test_a_person_who_closed_it_is_named() -> None:
    closed = Stated(at=NOW, by="Maya Kline", anchor="evidence-7")

    said = words(replace(UNKNOWN, status=Status.FAILED, statements=[closed]))

    assert "Maya Kline closed it at 09:53:40." in said


sends = st.builds(
    Sent,
    number=st.integers(1, 6),
    at=st.just(SENT_AT),
    outcome=st.sampled_from(Outcome) | st.none(),
    doubt=st.sampled_from(Doubt),
    kind=st.sampled_from(AnswerKind) | st.none(),
    http_status=st.sampled_from([200, 400, 409, 429, 500, 503]) | st.none(),
    refund_id=st.just("re_1"),
)
lookups = st.builds(
    LookedUp,
    number=st.integers(1, 9),
    at=st.just(NOW),
    result=st.sampled_from(["found", "absent", "incomplete", "unreadable"]),
    refund_id=st.just("re_1"),
    others=st.integers(0, 3),
)
told = st.builds(
    Told,
    at=st.just(NOW),
    refund_id=st.just("re_1"),
    refund_status=st.sampled_from(["succeeded", "failed", "pending", "canceled"]),
    anchor=st.just("event-1"),
)
#: What a flag adds is checked apart: a flag speaks of what contradicts, not of the end.
calm_flags = st.sets(st.sampled_from([Attention.MISMATCH, Attention.DISPUTED]))
anything_known = st.builds(
    Known,
    provider=st.just("Stripe"),
    money=st.just(Money(3_800, "usd")),
    status=st.sampled_from(Status),
    now=st.just(NOW),
    unknown_reason=st.sampled_from(UnknownReason),
    attention=st.builds(frozenset, calm_flags),
    key_window_closes_at=st.sampled_from([None, NOW, NOW + timedelta(hours=1)]),
    sends=st.lists(sends, max_size=4),
    lookups=st.lists(lookups, max_size=3),
    events=st.lists(told, max_size=3),
    statements=st.lists(st.just(Stated(at=NOW, by="Maya", anchor="evidence-1")), max_size=1),
)


@given(anything_known)
def test_whatever_is_known_can_be_said(known: Known) -> None:
    explanation = explain(known)

    assert all(str(line.sentence) for line in explanation.lines)
    assert len(explanation.lines) <= 9


@given(anything_known)
def test_while_it_is_unknown_no_sentence_says_how_it_ended(known: Known) -> None:
    said = " ".join(words(replace(known, status=Status.UNKNOWN))).lower()

    for word in ("succeeded", "failed", "did not happen", "went through", "refunded"):
        assert word not in said


SITUATION = Situation(
    status=Status.UNKNOWN,
    attention=frozenset(),
    proposal_waits=False,
    window_closed=False,
    last_lookup="absent",
    lookups_made=4,
    absence_holds=True,
    next_check_at=NOW + timedelta(minutes=5),
    now=NOW,
)


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({}, Step.LOOK_UP),
        ({"last_lookup": ""}, Step.LOOK_UP),
        ({"window_closed": True}, Step.CLOSE_FAILED),
        ({"window_closed": True, "last_lookup": "incomplete"}, Step.LOOK_UP),
        ({"window_closed": True, "absence_holds": False}, Step.LOOK_UP),
        ({"proposal_waits": True}, Step.SECOND_PERSON),
        ({"attention": frozenset([Attention.MISMATCH])}, Step.COMPARE),
        ({"attention": frozenset([Attention.DUPLICATE_REFUND])}, Step.REVIEW_REFUNDS),
        ({"attention": frozenset([Attention.CONFLICT])}, Step.REVIEW_REFUNDS),
        ({"attention": frozenset([Attention.FAILED_AFTER_SUCCESS])}, Step.TELL_CUSTOMER),
        ({"attention": frozenset([Attention.CONFIGURATION])}, Step.CHECK_ACCOUNT),
        ({"attention": frozenset([Attention.DISPUTED])}, Step.LOOK_UP),
        ({"status": Status.PROCESSING}, Step.WAIT),
        ({"status": Status.SUCCEEDED}, Step.NOTHING),
    ],
)
def test_the_advice_fits_the_situation(changes: dict[str, object], step: Step) -> None:
    assert advise(replace(SITUATION, **changes)).step is step  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (NOW + timedelta(minutes=5), "Next automatic look-up at 09:58:40"),
        (NOW, "An automatic look-up is due"),
        (None, "No automatic look-up is planned"),
    ],
)
def test_the_next_look_up_is_never_in_the_past(at: datetime | None, why: str) -> None:
    assert str(advise(replace(SITUATION, next_check_at=at)).why) == why


@pytest.mark.parametrize("reason", UnknownReason)
def test_every_reason_says_why_nothing_is_sent(reason: UnknownReason) -> None:
    assert str(why_not_sent(reason, "Stripe")).startswith("Sending again is off. ")
    assert why_not_sent(None, "Stripe") is None


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("contested", [False, True])
def test_the_customer_is_promised_nothing_that_is_not_known(
    status: Status, contested: bool
) -> None:
    message = str(
        customer_message(
            status=status, contested=contested, money=Money(3_800, "usd"), order_id="4417"
        )
    )

    assert ("has been made" in message) == (status is Status.SUCCEEDED)
    assert ("could not make" in message) == (status is Status.FAILED and not contested)


def test_text_from_outside_never_becomes_a_place() -> None:
    assert str(say("It is {what}.", what=Outside("{money} {}"))) == "It is {money} {}."


def test_every_line_but_what_nobody_did_leads_to_its_evidence() -> None:
    known = replace(
        UNKNOWN,
        attention=frozenset([Attention.MISMATCH]),
        raised_by={Attention.MISMATCH: "event-9"},
        key_window_closes_at=NOW - timedelta(hours=1),
    )
    lines = explain(known).lines
    assert {line.mark: line.anchor for line in lines[-3:]} == {
        Mark.WARNING: "event-9",
        Mark.WINDOW: "attempt-1",
        Mark.OPEN_POINT: "lookup-2",
    }
    assert all(line.source is not None for line in lines)

    (nobody,) = explain(replace(UNKNOWN, lookups=[])).lines[-1:]
    assert (str(nobody.sentence), nobody.anchor) == ("Nobody has looked at Stripe yet.", "")
