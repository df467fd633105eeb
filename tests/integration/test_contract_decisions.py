"""What a lesser promise changes: the number of sends, what an absence is worth, and who decides."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from operations.domain.advice import Step, advise
from operations.domain.answers import Answer, AnswerKind, RefundFacts
from operations.domain.budgets import Budget
from operations.domain.classify import Classification, Outcome, classify
from operations.domain.closure import ClosingOutcome, EvidenceKind, SecondPersonReason
from operations.domain.contract import Contract
from operations.domain.key_window import KeyWindowPolicy
from operations.domain.next_step import AttemptState, MarkUnknown, NextStep, Send, decide
from operations.domain.statuses import Status, UnknownReason
from operations.models import Operation
from operations.providers.contracts import SPOKEN_TO_LIKE_STRIPE
from operations.queries.dossier import read_dossier, situation
from operations.services.closing import close
from operations.services.looking_up import LookupResult
from operations.services.weighing import Decision

from .contract_stage import ContractStage, stage_under
from .stage import ALICE, split_opener
from .wire_provider import TERMS

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
WITHOUT_SAFE_REPLAY = [
    name for name, contract in SPOKEN_TO_LIKE_STRIPE.items() if not contract.replay_is_safe
]


@pytest.fixture
def stage(contract: str, transactional_db: None) -> Iterator[ContractStage]:
    with stage_under(contract) as found:
        yield found


def advised(operation: Operation, stage: ContractStage) -> Step:
    """What the console suggests."""
    dossier = read_dossier(operation.pk)
    assert dossier is not None
    return advise(situation(dossier, stage.clock())).step


def close_as_failed(stage: ContractStage, operation: Operation) -> list[str] | None:
    """One person closes it on an absence; why a second one is needed, None when it is closed."""
    operation.refresh_from_db()
    proposal = close(
        engine=stage.engine,
        operation_id=operation.pk,
        decision=Decision(
            outcome=ClosingOutcome.FAILED,
            evidence_kind=EvidenceKind.DASHBOARD,
            evidence_reference="case 7731",
            note="Not on the list.",
            revision=operation.revision,
        ),
        actor=ALICE,
    )
    return None if proposal is None else list(proposal.reasons)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("contract", WITHOUT_SAFE_REPLAY)
def test_absence_from_a_conclusive_list_lets_one_person_close_it(
    stage: ContractStage, contract: str
) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="before")
    operation = stage.ask(payment)
    for _ in range(2):
        stage.clock.advance(43_200)
        assert stage.look(operation) == (LookupResult.ABSENT, Status.UNKNOWN)

    assert advised(operation, stage) is Step.CLOSE_FAILED
    assert close_as_failed(stage, operation) is None

    assert Operation.objects.get().status == Status.FAILED
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("contract", ["never_conclusive"])
def test_absence_from_a_list_that_hides_refunds_never_counts(
    stage: ContractStage, contract: str
) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=3)
    operation = stage.ask(payment)
    stage.control.expire_keys()
    stage.clock.advance(86_400)
    stage.ask(payment)
    for _ in range(5):
        stage.clock.advance(86_400)
        assert stage.look(operation) == (LookupResult.ABSENT, Status.UNKNOWN)
        assert advised(operation, stage) is Step.LOOK_UP

    reasons = close_as_failed(stage, operation)

    assert reasons == [SecondPersonReason.NO_FRESH_ABSENCE]
    assert Operation.objects.get().status == Status.UNKNOWN
    # It was made, and no list has ever shown it.
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 3)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("contract", WITHOUT_SAFE_REPLAY)
def test_send_that_never_left_is_sent_when_it_can_be_even_without_a_safe_key(
    stage: ContractStage, contract: str
) -> None:
    payment = stage.payment()
    nowhere = split_opener(reads=stage.sandbox.url, sends="http://127.0.0.1:9")
    operation = stage.ask(payment, engine=replace(stage.engine, open_provider=nowhere))
    assert (operation.status, stage.sends(payment)) == (Status.OPEN, 0)

    assert stage.ask(payment).status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("contract", ["no_keys"])
def test_conflict_means_nothing_where_no_key_is_known(stage: ContractStage, contract: str) -> None:
    payment = stage.payment()
    stage.control.fault("409")

    stage.ask(payment)

    stage.assert_waits_for_a_person(UnknownReason.KEY_RETENTION_UNCLEAR)
    assert stage.sends(payment) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("contract", ["no_keys"])
def test_process_killed_before_the_send_is_not_sent_for_without_keys(
    stage: ContractStage, contract: str, start_sender: Callable[..., "subprocess.Popen[str]"]
) -> None:
    payment = stage.payment()
    process = start_sender(payment, "before_sending")
    process.communicate("\n", timeout=20)

    for _ in range(4):
        stage.sweep(40)

    operation = stage.assert_waits_for_a_person(UnknownReason.INTERRUPTED)
    assert operation.lookups_made > 0
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("contract", ["received_only"])
@pytest.mark.parametrize("end", ["succeeded", "failed"])
def test_received_refund_is_processing_until_a_look_up_finds_its_end(
    stage: ContractStage, contract: str, end: str
) -> None:
    payment = stage.payment()
    operation = stage.ask(payment)
    assert (operation.status, operation.provider_status) == (Status.PROCESSING, "pending")
    assert stage.look(operation) == (LookupResult.FOUND, Status.PROCESSING)

    stage.control.finish_refunds(end)

    assert stage.look(operation) == (LookupResult.FOUND, Status(end))
    assert stage.sends(payment) == 1


# --- Decisions follow from the contract's data ---------------------------------------------------

BUDGET = Budget(
    attempts_per_call=3,
    attempts_per_operation=6,
    call_deadline_s=30.0,
    backoff_base_s=0.5,
    send_s=13.0,
)
POLICY = KeyWindowPolicy(window_s=86_400, margin_s=900)
REFUND = RefundFacts(id="re_1", status="succeeded", amount=3_800, currency="usd", charge="ch_1")
ANSWERS = [
    Answer(kind=AnswerKind.NOT_SENT),
    Answer(kind=AnswerKind.CONNECTION_LOST),
    Answer(kind=AnswerKind.UNREADABLE, http_status=200),
    Answer(kind=AnswerKind.INTERRUPTED),
    Answer(kind=AnswerKind.RESPONSE, http_status=200, refund=REFUND),
    *(
        Answer(kind=AnswerKind.RESPONSE, http_status=status, error_type="invalid_request_error")
        for status in (400, 401, 402, 403, 404, 409, 422, 429, 500, 503)
    ),
]


def steps(contract: Contract, answers: Sequence[Answer], *, after_s: float) -> NextStep:
    """The next step after these answers to one send after another."""
    attempts: list[AttemptState] = []
    for answer in answers:
        doubtful = any(one.reading.outcome is Outcome.INDETERMINATE for one in attempts)
        reading = classify(answer, terms=TERMS, earlier_in_doubt=doubtful, contract=contract)
        attempts.append(AttemptState(started_at=START, finished_at=START, reading=reading))
    return decide(
        created_at=START,
        attempts=attempts,
        contract=contract,
        budget=BUDGET,
        policy=POLICY,
        configuration_blocked=False,
        now=START + timedelta(seconds=after_s),
        jitter=0.5,
    )


@pytest.mark.parametrize("after_s", [1, 86_400])
@pytest.mark.parametrize("contract", SPOKEN_TO_LIKE_STRIPE.values(), ids=SPOKEN_TO_LIKE_STRIPE)
def test_same_promises_under_another_name_are_decided_alike(
    contract: Contract, after_s: float
) -> None:
    renamed = replace(contract, provider="somebody_else")
    for first in ANSWERS:
        for second in ANSWERS:
            assert steps(contract, [first, second], after_s=after_s) == steps(
                renamed, [first, second], after_s=after_s
            )


@pytest.mark.parametrize("contract", SPOKEN_TO_LIKE_STRIPE.values(), ids=SPOKEN_TO_LIKE_STRIPE)
def test_send_in_doubt_is_repeated_only_where_a_replay_is_safe(contract: Contract) -> None:
    lost = Answer(kind=AnswerKind.CONNECTION_LOST)
    assert isinstance(steps(contract, [lost], after_s=1), Send) == contract.replay_is_safe


@pytest.mark.parametrize("contract", SPOKEN_TO_LIKE_STRIPE.values(), ids=SPOKEN_TO_LIKE_STRIPE)
def test_nothing_is_sent_whole_days_later_under_any_contract(contract: Contract) -> None:
    turned_away = Classification(outcome=Outcome.NOT_EXECUTED)
    attempt = AttemptState(started_at=START, finished_at=START, reading=turned_away)
    for attempts in ([], [attempt]):
        step = decide(
            created_at=START,
            attempts=attempts,
            contract=contract,
            budget=BUDGET,
            policy=POLICY,
            configuration_blocked=False,
            now=START + timedelta(seconds=86_400 - 900),
            jitter=0.5,
        )
        assert isinstance(step, MarkUnknown)
