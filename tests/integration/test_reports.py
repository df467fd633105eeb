"""What others reported of this work, and the tests in which it cannot happen here.

Each line names a public thread, what went wrong there, and our tests of it; the tests below are
those that stand nowhere else. What no part of the product can do yet (acting on many operations
at once) has no line.
"""

import re
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.domain.statuses import Status
from operations.models import AuditEntry, EventHandling, Handling, Operation, WebhookEvent
from operations.services.closing import close
from operations.services.draining import handle_next_event
from operations.services.engine import default_engine
from operations.services.looking_up import LookupResult, look_up
from operations.services.sending import send_until_decided
from operations.services.weighing import Decision

from .agent import Agent
from .cases import ENVIRONMENT, Recording, provider_answer, webhook
from .deliveries import deliver
from .recorded import recorded_provider
from .stage import ALICE, JOB, MovingClock, Stage, engine_for
from .test_matching_events import refused_evidence

#: Report: the thread, what went wrong there, our tests of it.
REPORTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "H01": (
        "medusajs/medusa#16681",
        "the refund's row, and with it its key, did not outlive a failed call",
        (
            "test_pressing_retry_keeps_the_row_the_key_and_the_body",
            "test_answer_lost_after_success_is_recovered_with_the_same_key",
        ),
    ),
    "H02": (
        "stripe/ai#402",
        "an agent that plans anew after a timeout refunds twice",
        (
            "test_agent_that_plans_its_refund_anew_reaches_the_same_operation",
            "test_other_terms_for_an_unresolved_refund_are_a_conflict",
            "test_equal_parts_stand_side_by_side_under_their_references",
        ),
    ),
    "H03": (
        "langchain-ai/langgraph#3126",
        "a resumed graph runs its tool again",
        (
            "test_resumed_agent_gets_the_answer_of_its_tool_call_settled_or_not",
            "test_killed_after_the_provider_acted_it_is_found_and_settled_without_a_send",
            "test_killed_after_the_provider_acted_the_same_key_settles_it_when_lists_lag",
        ),
    ),
    "H04": (
        "saleor/apps#2446",
        "a key made from the amount swallows a second refund of that amount",
        (
            "test_equal_parts_with_their_own_references_all_go_through_at_once",
            "test_job_that_is_delivered_five_times_sends_once",
        ),
    ),
    "H05": (
        "triggerdotdev/trigger.dev#4953",
        "a key is trusted for longer than it lives",
        (
            "test_crash_that_is_found_after_the_key_window_is_never_sent_again",
            "test_closed_window_ends_the_sending_when_somebody_asks",
            "test_lists_are_read_to_their_end_and_believed_by_proof_only",
            "test_answers_to_sends_mean_what_they_say",
        ),
    ),
    "H06": (
        "juspay/hyperswitch#3751",
        "the way that recovers fills in less than the way that works",
        (
            "test_refund_without_metadata_is_matched_by_its_known_id",
            "test_request_that_never_reached_the_provider_is_sent_when_it_can_be",
        ),
    ),
    "H07": (
        "killbill/killbill#809",
        "a fixer read the row before it took the lock",
        (
            "test_slow_look_up_does_not_undo_what_a_webhook_brought_meanwhile",
            "test_slow_look_up_does_not_undo_what_a_person_decided_meanwhile",
        ),
    ),
    "H08": (
        "woocommerce/woocommerce-gateway-stripe#2724",
        "the webhook comes before the answer is saved",
        (
            "test_webhook_that_overtakes_the_answer_makes_one_result",
            "test_event_that_comes_before_its_operation_is_matched_afterwards",
        ),
    ),
    "H09": (
        "dj-stripe/dj-stripe#832",
        "received and processed are one flag",
        (
            "test_event_whose_handling_failed_is_handled_when_it_comes_again",
            "test_deliveries_at_the_same_moment_are_one_row",
        ),
    ),
    "H10": (
        "laravel/cashier-stripe#1201",
        "the order of arrival is taken for the order of events",
        (
            "test_events_of_one_refund_end_alike_in_any_order",
            "test_failure_after_success_wins_in_any_order",
        ),
    ),
    "H11": (
        "stripe/stripe-node#2224",
        "metadata is read from the wrong object",
        ("test_webhooks_bring_their_operation_where_they_should",),
    ),
    "H12": (
        "woocommerce/woocommerce-gateway-stripe#2497",
        "the payload's version is not the SDK's",
        ("test_refunds_are_read_out_of_events_of_every_version",),
    ),
    "H13": (
        "pgeu/pgeu-system#157",
        "coincidence is taken for identity",
        (
            "test_refund_of_the_same_amount_from_the_dashboard_is_looked_up_and_shown_as_possible",
            "test_our_part_is_found_wherever_it_stands_in_the_list",
            "test_cleared_flag_comes_back_for_another_fact_only",
        ),
    ),
    "H14": (
        "woocommerce/woocommerce-gateway-stripe#4405",
        "success is treated as final",
        ("test_failure_after_success_wins_in_any_order",),
    ),
    "H15": (
        "stripe/stripe-sfcc-b2c-connector#31",
        "a fixed factor of a hundred",
        (
            "test_500_yen_are_sent_as_500",
            "test_an_amount_that_the_currency_has_not_is_refused",
            "test_all_recorded_webhooks_are_kept_and_bring_every_operation_where_it_should",
        ),
    ),
    "H16": (
        "opengovsg/FormSG#6234",
        "what is not mine is handled as an error",
        (
            "test_foreign_events_are_acknowledged_counted_apart_and_change_nothing",
            "test_payment_that_the_account_does_not_have_is_a_configuration_matter",
        ),
    ),
    "H17": (
        "bigskysoftware/htmx#3483",
        "one shot is guarded in the browser only",
        (
            "test_the_same_form_twice_is_one_decision_and_the_second_names_who",
            "test_two_people_at_once_make_one_decision",
            "test_a_fragment_whose_session_has_ended_leads_to_sign_in_and_back",
        ),
    ),
    "H18": (
        "pretix/pretix#3548",
        "the filter is not part of the action",
        (
            "test_all_that_match_are_the_twelve_that_the_filter_leaves",
            "test_another_number_than_the_page_showed_is_refused_and_nothing_changes",
        ),
    ),
    "H19": (
        "DefectDojo/django-DefectDojo#2388",
        "the audit hangs on signals",
        (
            "test_twelve_are_closed_each_with_its_own_entry_and_evidence",
            "test_no_row_is_changed",
            "test_no_row_is_deleted",
            "test_no_table_is_emptied",
        ),
    ),
    "H20": (
        "celery/kombu#337",
        "a queue that delivers again is used as one that delivers once",
        (
            "test_many_sweeps_at_once_claim_each_due_check_once",
            "test_two_beats_and_four_workers_without_the_brokers_memory_lose_and_double_nothing",
        ),
    ),
    "H21": (
        "dj-stripe/dj-stripe#2241",
        "the doubles of the tests are of another type than the SDK's",
        ("test_all_recorded_webhooks_are_kept_and_bring_every_operation_where_it_should",),
    ),
    "H22": (
        "stripe/stripe-node#1487",
        "not found is read as does not exist, a refusal as try again",
        (
            "test_lists_are_read_to_their_end_and_believed_by_proof_only",
            "test_already_refunded_is_neither_success_nor_failure_and_makes_no_loop",
            "test_absence_alone_closes_nothing_while_the_policy_is_off",
        ),
    ),
}


@cache
def _tests() -> frozenset[str]:
    """The names of all tests."""
    folder = Path(__file__).parents[1]
    return frozenset(
        name
        for path in folder.rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    )


@pytest.mark.parametrize("report", REPORTS)
def test_report_has_its_tests(report: str) -> None:
    _, _, tests = REPORTS[report]
    assert [name for name in tests if name not in _tests()] == []


@pytest.mark.django_db(transaction=True)
def test_pressing_retry_keeps_the_row_the_key_and_the_body(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=2)
    operation = stage.ask(payment, amount=2_500)
    for _ in range(2):
        stage.clock.advance(3_600)
        send_until_decided(engine=stage.engine, operation_id=operation.pk, actor=JOB)

    settled = Operation.objects.get()
    assert settled.status == Status.SUCCEEDED
    attempts = list(settled.attempts.order_by("number"))
    assert len(attempts) == 3 == stage.sends(payment)
    assert len({(row.idempotency_key, str(row.parameters)) for row in attempts}) == 1
    assert (stage.refunds(payment), stage.refunded(payment)) == (1, 2_500)
    assert stage.keys(payment) == {settled.idempotency_key}


@pytest.mark.django_db(transaction=True)
def test_slow_look_up_does_not_undo_what_a_person_decided_meanwhile() -> None:
    operation = Recording.named("a1").insert()

    def decide() -> None:
        row = Operation.objects.get()
        closed = close(
            engine=engine_for("http://127.0.0.1:9", MovingClock()),
            operation_id=row.pk,
            decision=Decision(
                outcome=ClosingOutcome.FAILED,
                evidence_kind=EvidenceKind.DASHBOARD,
                evidence_reference="case 7",
                note="Not there.",
                revision=row.revision,
            ),
            actor=ALICE,
        )
        assert closed is not None or Operation.objects.get().status == Status.FAILED

    with recorded_provider(lists=[provider_answer("L04")]) as provider:
        engine = engine_for(provider.url, MovingClock())
        real = engine.open_provider

        class Meanwhile:
            """Somebody decides between the reading and the lock."""

            def __init__(self, inner: Any) -> None:
                self._inner = inner

            def __getattr__(self, name: str) -> Any:
                return getattr(self._inner, name)

            def read_payment(self, **where: Any) -> Any:
                decide()
                return self._inner.read_payment(**where)

        slow = replace(
            engine,
            environment=ENVIRONMENT,
            open_provider=lambda account: Meanwhile(real(account)),
        )
        before = Operation.objects.get().status
        found = look_up(engine=slow, operation_id=operation.pk, actor=JOB)

    operation.refresh_from_db()
    assert (before, found) == (Status.UNKNOWN, LookupResult.ABSENT)
    changes = [
        (row.before.get("status"), row.after.get("status"))
        for row in AuditEntry.objects.filter(operation_id=operation.pk)
        if row.before.get("status") != row.after.get("status")
    ]
    assert len(changes) <= 1
    assert operation.attention == []


@pytest.fixture
def _cases(served: Stage, settings: Any) -> None:
    settings.RECONCILE = replace(settings.RECONCILE, environment=ENVIRONMENT)
    default_engine.cache_clear()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_cases")
def test_event_whose_handling_failed_is_handled_when_it_comes_again() -> None:
    Recording.named("a1").insert()
    assert deliver(webhook("01")).status_code == 200
    with refused_evidence():
        handle_next_event(engine=default_engine())
    assert Operation.objects.get().status == Status.UNKNOWN

    assert deliver(webhook("02")).status_code == 200
    engine = default_engine()
    later = replace(engine, clock=lambda: engine.clock() + timedelta(hours=2))
    while handle_next_event(engine=later) is not None:
        pass

    assert Operation.objects.get().status == Status.SUCCEEDED
    assert WebhookEvent.objects.get().deliveries == 2
    assert AuditEntry.objects.filter(action="provider_succeeded").count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_cases")
def test_foreign_events_are_acknowledged_counted_apart_and_change_nothing() -> None:
    made = [Recording.named(name).insert() for name in ("d3", "d5", "f3")]
    said = {
        "24": Handling.NOT_OURS,
        "25": Handling.NOT_OURS,
        "26": Handling.OTHER_ENVIRONMENT,
        "37": Handling.WRONG_MODE,
        "46": Handling.IGNORED,
        "47": Handling.IGNORED,
    }
    for name in said:
        assert deliver(webhook(name)).status_code == 200
    while handle_next_event(engine=default_engine()) is not None:
        pass

    counted = sorted(EventHandling.objects.values_list("handling", flat=True))
    assert counted == sorted(str(handling) for handling in said.values())
    for row in made:
        after = Operation.objects.get(pk=row.pk)
        assert (after.status, after.attention, after.revision) == (
            Status.UNKNOWN,
            [],
            row.revision,
        )


@pytest.mark.django_db(transaction=True)
def test_500_yen_are_sent_as_500(served: Stage, agent: Agent) -> None:
    payment = served.payment(amount=1_000, currency="jpy")

    answered = agent.ask(payment, amount=500, currency="jpy")

    assert answered.json()["status"] == "refunded"
    assert served.refunded(payment) == 500
