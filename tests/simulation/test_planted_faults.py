"""The simulation can fail: each planted fault is caught, with the database's own guards off."""

from collections.abc import Callable, Iterator

import pytest

from tests.simulation import database
from tests.simulation.faults import PLANTED, Fault
from tests.simulation.seeds import first_red

#: Within so many seeds each fault has to be caught.
SEEDS = 500
#: The first seed that caught each when the worlds were last changed. It is tried first, to spare
#: the green ones before it; where it stays green after a change, all are searched.
CAUGHT_AT = {
    "absence_settles": 0,
    "attempt_written_after_the_send": 0,
    "audit_entry_forgotten": 0,
    "budget_not_counted": 18,
    "conflict_read_as_refused": 1,
    "failure_overwritten": 7,
    "interrupted_read_as_not_executed": 150,
    "key_window_forgotten": 0,
    "last_report_wins": 20,
    "late_answer_overwrites": 10,
    "lease_not_looked_at": 185,
    "library_retries": 1,
    "lost_sends_not_swept": 8,
    "matched_by_amount": 131,
    "new_key_on_retry": 0,
    "pending_taken_for_success": 2,
    "rate_limit_read_as_refused": 1,
    "read_before_the_lock": 33,
    "refusal_on_resend_believed": 4,
    "repeated_wish_opens_another": 51,
    "saved_error_sent_again": 59,
    "sends_after_a_long_sleep": 10,
    "sends_of_one_payment_side_by_side": 94,
    "success_taken_for_final": 4,
    "till_without_the_unresolved": 16,
    "timeout_read_as_refused": 1,
    "token_forgotten": 65,
    "tool_call_forgotten": 324,
    "transaction_around_the_send": 0,
}


@pytest.fixture
def unguarded(simulation_database: None) -> Iterator[None]:
    """The product's tables without their triggers, so that the code alone has to be right."""
    with database.guards_off():
        yield


@pytest.mark.usefixtures("unguarded")
@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_planted_fault_is_caught(
    fault: Fault, record_property: Callable[[str, object], None]
) -> None:
    with fault.plant():
        caught = first_red([CAUGHT_AT.get(fault.name, 0), *range(SEEDS)])
    assert caught is not None, f"{SEEDS} seeds stayed green although: {fault.says}"
    seed, check = caught
    record_property("caught", f"{check} at seed {seed}")
