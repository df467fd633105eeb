"""A refund export changes what its lines prove, once, and shows what it would do beforehand."""

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from operations.domain.bulk import BulkAction
from operations.domain.csv_lines import csv_lines
from operations.domain.report_columns import read_mapping
from operations.domain.statuses import Attention, Status
from operations.models import (
    AuditEntry,
    Evidence,
    EvidenceSource,
    Operation,
    Payment,
    ProviderRefund,
    ReportFile,
    ReportPiece,
    ReportRow,
)
from operations.models.audit import first_break
from operations.queries.reports import result_lines
from operations.services import report_reading
from operations.services.draining import drain
from operations.services.report_applying import apply_report
from operations.services.report_reading import read_report
from operations.services.reporting import ReportRefused, let_apply, reports_left_lying
from operations.services.sweeping import check, claim_due_checks

from .bulk_runs import begun, see, work
from .deliveries import deliver, event
from .reports import applied, export, given, known_line_of, line, line_of, read, results
from .stage import ALICE, Stage

pytestmark = pytest.mark.django_db(transaction=True)


def unknown(stage: Stage, **asked: Any) -> Operation:
    """The provider answered 500 and made the refund; no webhook tells."""
    stage.control.fault("500", when="after")
    return stage.ask(stage.payment(), **asked)


def refund_of(stage: Stage, operation: Operation) -> str:
    """The refund's id at the provider."""
    sends = stage.control.sends(payment=operation.payment.charge)
    return str(next(send["refund"] for send in sends if send["refund"]))


def test_a_line_of_a_known_refund_settles_the_operation_with_the_report_as_evidence(
    stage: Stage,
) -> None:
    operation = unknown(stage)

    report = applied(stage, export([known_line_of(operation, "re_ours")]))

    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert operation.provider_object_id == "re_ours"
    assert results(report) == {"re_ours": "applied"}
    proof = operation.evidence.get(source=EvidenceSource.REPORT_ROW)
    assert (proof.facts["line"], proof.facts["file"]) == (2, "refunds.csv")
    entry = AuditEntry.objects.filter(operation_id=operation.pk).latest("number")
    assert (entry.actor_name, entry.evidence_id) == ("Alice", str(proof.pk))
    assert report.lines.get().operation_id == operation.pk


def test_a_file_alone_settles_nothing_and_the_provider_is_asked(stage: Stage) -> None:
    operation = unknown(stage)
    operation.plan(now=stage.clock(), next_check_at=None)

    report = applied(stage, export([line_of(operation, "re_made_up", status="failed")]))

    operation.refresh_from_db()
    assert (operation.status, operation.provider_object_id) == (Status.UNKNOWN, "")
    assert results(report) == {"re_made_up": "needs_lookup"}
    proof = operation.evidence.get(source=EvidenceSource.REPORT_ROW)
    assert (proof.provider_object_id, proof.provider_status) == ("re_made_up", "failed")
    assert claim_due_checks(engine=stage.engine) == [operation.pk]
    check(engine=stage.engine, operation_id=operation.pk)
    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert operation.provider_object_id == refund_of(stage, operation)


def test_a_mark_in_a_file_does_not_make_a_strangers_refund_an_operations_own(served: Stage) -> None:
    operation = unknown(served)
    theirs = event("evt_theirs", type="refund.created", data={"object": refund_on(operation)})
    assert deliver(theirs).status_code == 200
    while drain(engine=served.engine) is not None:
        pass

    report = applied(served, export([line_of(operation, "re_theirs")]))
    again = begun(served, see(served, [operation.pk], BulkAction.MATCH_AGAIN))
    work(served.engine, again)

    operation.refresh_from_db()
    assert (operation.status, operation.provider_object_id) == (Status.UNKNOWN, "")
    assert results(report) == {"re_theirs": "needs_lookup"}
    kept = ProviderRefund.objects.get(provider_object_id="re_theirs")
    assert (kept.operation_id, kept.metadata) == (None, {})


def refund_on(operation: Operation) -> dict[str, Any]:
    """What the provider tells of a refund that somebody else made of the same money."""
    return {
        "id": "re_theirs",
        "object": "refund",
        "amount": operation.amount,
        "currency": operation.currency,
        "status": "succeeded",
        "charge": operation.payment.charge,
        "created": 1_795_000_000,
        "metadata": {},
    }


def test_the_preview_says_what_would_happen_and_changes_nothing(stage: Stage) -> None:
    settles, differs = unknown(stage), unknown(stage, order_id="4418")
    settled = stage.ask(stage.payment(), order_id="4419")
    asks = unknown(stage, order_id="4420")
    before = Evidence.objects.count()

    report = read(
        stage,
        export(
            [
                known_line_of(settles, "re_a"),
                line_of(settled, settled.provider_object_id),
                line_of(differs, "re_c", amount="37.99"),
                line("re_d"),
                line("re_e", amount="many"),
                line_of(asks, "re_f"),
            ]
        ),
    )

    assert (report.state, report.rows) == ("read", 6)
    assert report.previewed == {
        "matches": 1,
        "needs_lookup": 1,
        "nothing_new": 1,
        "contradicts": 1,
        "unknown": 1,
        "bad": 1,
    }
    assert list(report.lines.order_by("line").values_list("line", "preview")) == [
        (2, "matches"),
        (3, "nothing_new"),
        (4, "contradicts"),
        (5, "unknown"),
        (6, "bad"),
        (7, "needs_lookup"),
    ]
    settles.refresh_from_db()
    assert settles.status == Status.UNKNOWN
    assert Evidence.objects.count() == before
    assert not ReportPiece.objects.exists()


def test_a_line_that_differs_is_a_mismatch_and_never_a_change(stage: Stage) -> None:
    operation = unknown(stage)

    report = applied(stage, export([line_of(operation, "re_other", amount="37.99")]))

    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    assert Attention.MISMATCH in operation.attention
    assert results(report) == {"re_other": "contradicts"}


def test_a_refund_without_operation_is_kept_as_made_outside(stage: Stage) -> None:
    operation = unknown(stage)
    alike = line("re_theirs", amount="38.00", charge=operation.payment.charge)

    report = applied(stage, export([alike]))

    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    kept = ProviderRefund.objects.get()
    assert (kept.provider_object_id, kept.operation_id, kept.amount) == ("re_theirs", None, 3_800)
    assert results(report) == {"re_theirs": "kept"}


def test_a_refund_that_is_known_by_its_id_needs_no_mark(stage: Stage) -> None:
    operation = stage.ask(stage.payment())
    known = line_of(operation, operation.provider_object_id, mark="", status="failed")

    report = applied(stage, export([known]))

    operation.refresh_from_db()
    assert operation.status == Status.FAILED
    assert Attention.FAILED_AFTER_SUCCESS in operation.attention
    assert results(report) == {operation.provider_object_id: "contradicts"}


def test_other_environments_and_operations_that_we_do_not_have_change_nothing(
    stage: Stage,
) -> None:
    operation = unknown(stage)
    missing = "0198f7a0-0000-7000-8000-000000000000"

    report = applied(
        stage,
        export(
            [
                line_of(operation, "re_staging", environment="staging"),
                line_of(operation, "re_missing", mark=missing),
            ]
        ),
    )

    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    assert results(report) == {"re_staging": "other_environment", "re_missing": "unmatched"}


def test_bad_lines_are_named_and_the_good_ones_applied(stage: Stage) -> None:
    operation = unknown(stage)

    report = applied(
        stage, export([line("re_x", currency="zzz"), known_line_of(operation, "re_ours"), line("")])
    )

    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert [(row.line, row.result, row.problem) for row in report.lines.order_by("line")] == [
        (2, "bad", "“zzz” is no currency that is known."),
        (3, "applied", ""),
        (4, "bad", "The line has no refund id."),
    ]


def test_the_same_file_is_one_import(stage: Stage) -> None:
    raw = export([known_line_of(unknown(stage), "re_ours")])
    first = applied(stage, raw)

    again = read(stage, raw, name="copy of refunds.csv")

    assert again.pk == first.pk
    assert ReportRow.objects.count() == 1
    with pytest.raises(ReportRefused, match="applied already"):
        let_apply(engine=stage.engine, report_id=first.pk, actor=ALICE)


def test_the_same_facts_in_another_file_change_nothing(stage: Stage) -> None:
    lines = [known_line_of(unknown(stage), "re_ours"), line("re_theirs")]
    applied(stage, export(lines))
    evidence, entries = Evidence.objects.count(), AuditEntry.objects.exclude(operation_id=None)
    before = entries.count()

    report = applied(stage, export(reversed(lines)))

    assert results(report) == {"re_theirs": "no_change", "re_ours": "no_change"}
    assert Evidence.objects.count() == evidence
    assert entries.count() == before


def test_an_older_report_does_not_take_a_refund_back(stage: Stage) -> None:
    operation = unknown(stage)
    applied(stage, export([known_line_of(operation, "re_ours")]))

    report = applied(stage, export([line_of(operation, "re_ours", status="pending")]))

    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert results(report) == {"re_ours": "no_change"}


def test_reading_goes_on_where_it_was_stopped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_reading, "_BATCH", 10)
    report = given(stage, export(line(f"re_{n}") for n in range(35)))

    slices = 0
    while read_report(engine=stage.engine, report_id=report.pk, is_over=lambda: True):
        slices += 1
        assert slices < 10

    report.refresh_from_db()
    assert (report.state, report.rows, report.previewed) == ("read", 35, {"unknown": 35})
    assert list(report.lines.order_by("line").values_list("line", flat=True)) == [*range(2, 37)]
    assert slices == 4


def test_two_that_work_on_one_report_do_no_harm(stage: Stage) -> None:
    report = given(stage, export([line("re_1")]))
    ReportFile.objects.update(claimed_until=stage.clock() + timedelta(seconds=60))

    assert read_report(engine=stage.engine, report_id=report.pk, is_over=lambda: False) is False

    assert ReportRow.objects.count() == 0
    assert reports_left_lying(engine=stage.engine) == []
    stage.clock.advance(61)
    assert reports_left_lying(engine=stage.engine) == [report.pk]
    read_report(engine=stage.engine, report_id=report.pk, is_over=lambda: False)
    assert ReportRow.objects.count() == 1


@contextmanager
def refused_by(table: str) -> Iterator[Callable[[], None]]:
    """The table takes no row about refund re_2, until the value is called."""

    def run(text: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} {text}")

    def relent() -> None:
        run("DROP CONSTRAINT IF EXISTS not_this_one")

    run("ADD CONSTRAINT not_this_one CHECK (provider_object_id <> 're_2') NOT VALID")
    yield relent
    relent()


@pytest.fixture
def database_refuses_re_2() -> Iterator[Callable[[], None]]:
    """The database takes no refund with this id, until the fixture's value is called."""
    with refused_by("operations_providerrefund") as relent:
        yield relent


@pytest.fixture
def _database_refuses_evidence_of_re_2() -> Iterator[None]:
    """The database takes no evidence about this refund."""
    with refused_by("operations_evidence"):
        yield


def test_a_line_that_fails_delays_no_other_and_may_be_tried_again(
    stage: Stage, database_refuses_re_2: Callable[[], None]
) -> None:
    report = applied(stage, export([line("re_1"), line("re_2"), line("re_3")]))
    assert results(report) == {"re_1": "kept", "re_2": "failed", "re_3": "kept"}
    assert report.results == {"kept": 2, "failed": 1}
    assert "IntegrityError" in report.lines.get(refund_id="re_2").problem

    database_refuses_re_2()
    let_apply(engine=stage.engine, report_id=report.pk, actor=ALICE)
    apply_report(engine=stage.engine, report_id=report.pk, is_over=lambda: False)

    report.refresh_from_db()
    assert (report.results, report.applied_rows) == ({"kept": 3}, 3)


def test_quiet_lines_of_settled_operations_cost_a_few_queries_for_a_whole_batch(
    stage: Stage, django_assert_max_num_queries: Any
) -> None:
    operations = [stage.ask(stage.payment(), order_id=str(n)) for n in range(20)]
    raw = export([line_of(row, row.provider_object_id) for row in operations])
    report = read(stage, raw)
    let_apply(engine=stage.engine, report_id=report.pk, actor=ALICE)

    with django_assert_max_num_queries(60):
        apply_report(engine=stage.engine, report_id=report.pk, is_over=lambda: False)

    assert set(results(report).values()) == {"no_change"}


def test_a_file_that_is_too_large_is_not_taken(stage: Stage) -> None:
    with pytest.raises(ReportRefused, match="larger than 1 MiB"):
        given(stage, export([line("re_1")] * 20_000), most_bytes=2**20)

    assert not ReportFile.objects.exists()


def test_more_lines_than_allowed_refuse_the_file(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_reading, "MOST_ROWS", 3)

    report = read(stage, export([line(f"re_{n}") for n in range(4)]))

    assert report.state == "refused"
    assert "more than 3 lines" in report.problem
    with pytest.raises(ReportRefused, match="can't be read"):
        let_apply(engine=stage.engine, report_id=report.pk, actor=ALICE)


@pytest.mark.parametrize("raw", [b"name,e-mail\nx,y\n", b"PK\x03\x04", export([])])
def test_a_file_that_is_no_refund_export_is_refused_with_its_reason(
    stage: Stage, raw: bytes
) -> None:
    report = read(stage, raw)

    assert report.state == "refused"
    assert report.problem
    assert read(stage, export([line("re_1")])).state == "read"


def test_the_results_can_be_taken_away_and_no_cell_of_them_runs(stage: Stage) -> None:
    report = applied(stage, export([line("re_1"), line("=2+5")]))

    mark, *written = csv_lines(result_lines(report))
    assert mark == "\ufeff"
    assert list(csv.reader(written)) == [
        [
            *("line", "refund", "charge", "payment_intent", "amount", "currency", "status"),
            *("foreseen", "result", "reason", "operation"),
        ],
        ["2", "re_1", "ch_elsewhere", "", "38.00", "usd", "succeeded", "unknown", "kept", "", ""],
        ["3", *[""] * 6, "bad", "bad", "“=2+5” is no id of a refund.", ""],
    ]


def test_both_acts_are_in_the_audit_trail(stage: Stage) -> None:
    report = applied(stage, export([line("re_1")]))

    entries = list(AuditEntry.objects.filter(chain="system").order_by("number"))
    assert [(row.action, row.actor_name, row.actor_address) for row in entries] == [
        ("report_uploaded", "Alice", "127.0.0.1"),
        ("report_applied", "Alice", "127.0.0.1"),
    ]
    assert entries[1].after["content_hash"] == report.content_hash
    assert first_break(entries) is None


def command(*arguments: str) -> str:
    said = StringIO()
    call_command("import_report", *arguments, stdout=said, stderr=StringIO())
    return said.getvalue()


def test_the_command_shows_first_and_applies_when_asked(served: Stage, tmp_path: Path) -> None:
    operation = unknown(served)
    file = tmp_path / "refunds.csv"
    file.write_bytes(export([known_line_of(operation, "re_ours"), line("re_x", status="?")]))

    said = command(str(file))
    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    assert "1  would change an operation" in said
    assert "line 3: The status “?” is none that a refund has." in said

    assert "1  Changed an operation" in command(str(file), "--apply")
    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED


def test_the_command_reads_a_mapping_file(served: Stage, tmp_path: Path) -> None:
    file, mapping = tmp_path / "other.csv", tmp_path / "mapping.json"
    file.write_text("Number,Payment,Cents,Currency,Status\nre_1,ch_1,500,usd,pending\n")
    names = {"refund": "Number", "charge": "Payment", "amount": "Cents", "amounts": "minor"}
    mapping.write_text(json.dumps(names))

    command(str(file), "--mapping", str(mapping))

    assert ReportRow.objects.get().amount == 500
    assert ReportFile.objects.get().mapping == read_mapping(names).as_json()


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "can't be read"), (b"", "is empty"), (b"a,b\n1,2\n", "names no column for")],
)
def test_the_command_says_what_is_wrong(
    served: Stage, tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "refunds.csv"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(CommandError) as refused:
        command(str(file))

    assert words in str(refused.value)


def test_a_line_that_shows_no_payment_of_ours_has_the_provider_asked(stage: Stage) -> None:
    operation = unknown(stage)
    Payment.objects.update(payment_intent="")
    hearsay = line_of(operation, "re_copied", charge="pi_somewhere")

    raw = export([hearsay]).replace(b"Charge ID", b"PaymentIntent ID")
    report = applied(stage, raw)

    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    assert operation.next_check_at is not None
    assert results(report) == {"re_copied": "needs_lookup"}


def test_lines_of_many_operations_are_applied_by_as_many_statements_as_those_of_few(
    stage: Stage,
) -> None:
    def statements(count: int) -> int:
        operations = [unknown(stage, order_id=f"{count}-{number}") for number in range(count)]
        lines = [known_line_of(row, f"re_{row.order_id}") for row in operations]
        report = read(stage, export(lines))
        let_apply(engine=stage.engine, report_id=report.pk, actor=ALICE)
        with CaptureQueriesContext(connection) as sent:
            apply_report(engine=stage.engine, report_id=report.pk, is_over=lambda: False)
        assert set(results(report).values()) == {"applied"}
        return len(sent)

    assert statements(2) == statements(7) <= 32


@pytest.mark.usefixtures("_database_refuses_evidence_of_re_2")
def test_a_line_that_can_not_be_applied_takes_no_other_operation_with_it(stage: Stage) -> None:
    operations = [unknown(stage, order_id=str(number)) for number in range(5)]
    lines = [known_line_of(row, f"re_{row.order_id}") for row in operations]
    report = read(stage, export(lines))
    let_apply(engine=stage.engine, report_id=report.pk, actor=ALICE)

    apply_report(engine=stage.engine, report_id=report.pk, is_over=lambda: False)

    wanted = ["applied", "applied", "failed", "applied", "applied"]
    assert list(results(report).values()) == wanted
    for operation in operations:
        operation.refresh_from_db()
        entries = AuditEntry.objects.filter(operation_id=operation.pk).order_by("number")
        assert first_break(entries) is None
    assert [row.status for row in operations] == [
        Status.UNKNOWN if result == "failed" else Status.SUCCEEDED for result in wanted
    ]


def test_lines_about_one_operation_are_taken_in_their_order(stage: Stage) -> None:
    operation = unknown(stage)
    lines = [
        known_line_of(operation, "re_ours", status="pending"),
        line_of(operation, "re_ours"),
        line_of(operation, "re_second"),
        line_of(operation, "re_ours", status="failed"),
    ]

    report = applied(stage, export(lines))

    told = list(report.lines.order_by("line").values_list("result", flat=True))
    assert told == ["applied", "applied", "contradicts", "contradicts"]
    operation.refresh_from_db()
    assert operation.status == Status.FAILED
