"""A process that reads or applies a report is killed: another goes on, no line is done twice."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from operations.domain.statuses import Status
from operations.models import AuditEntry, ProviderRefund, ReportFile, ReportRow
from operations.services.report_applying import apply_report
from operations.services.report_reading import LEASE_S, read_report
from operations.services.reporting import reports_left_lying

from .conftest import ROOT
from .reports import export, known_line_of, line
from .stage import ENVIRONMENT, Stage

pytestmark = pytest.mark.django_db(transaction=True)

Importing = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def importing(process_env: dict[str, str], tmp_path: Path) -> Iterator[Importing]:
    """Start a process that imports a report, with these further arguments."""
    started: list[subprocess.Popen[str]] = []

    def start(raw: bytes, *arguments: str) -> "subprocess.Popen[str]":
        file = tmp_path / "refunds.csv"
        file.write_bytes(raw)
        process = subprocess.Popen(
            [sys.executable, "manage.py", "import_report", str(file), *arguments],
            cwd=ROOT,
            env=process_env | {"RECONCILE_ENVIRONMENT": ENVIRONMENT},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def kill_when(process: "subprocess.Popen[str]", is_time: Callable[[], bool]) -> None:
    """SIGKILL as soon as it is time."""
    over = time.monotonic() + 60
    while not is_time():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < over
        time.sleep(0.005)
    process.kill()
    assert process.wait(10) == -signal.SIGKILL


def test_killed_while_reading_it_is_read_to_the_end_by_another(
    stage: Stage, importing: Importing
) -> None:
    stage.ask_for_the_account()
    process = importing(export(line(f"re_{n}") for n in range(30_000)))

    kill_when(process, lambda: ReportFile.objects.filter(rows__gt=0).exists())

    report = ReportFile.objects.get()
    assert report.state == "reading"
    assert ReportRow.objects.count() == report.rows < 30_000
    stage.clock.advance(LEASE_S + 1)
    assert reports_left_lying(engine=stage.engine) == [report.pk]
    read_report(engine=stage.engine, report_id=report.pk, is_over=lambda: False)
    report.refresh_from_db()
    assert (report.state, report.rows, report.previewed) == ("read", 30_000, {"unknown": 30_000})
    assert ReportRow.objects.values("line").distinct().count() == 30_000


def test_killed_while_applying_each_line_is_applied_once(
    stage: Stage, importing: Importing
) -> None:
    stage.control.fault("500", when="after", times=2)
    operations = [stage.ask(stage.payment(), order_id=str(n)) for n in range(2)]
    lines = [line(f"re_{n:05}") for n in range(3_000)]
    lines[10:10] = [known_line_of(operations[0], "re_first")]
    lines.append(known_line_of(operations[1], "re_last"))
    process = importing(export(lines), "--apply")

    kill_when(process, ReportRow.objects.filter(result="kept").exists)

    report = ReportFile.objects.get()
    done = ReportRow.objects.exclude(result="").count()
    assert 0 < done < len(lines)
    assert report.state == "applying"
    stage.clock.advance(LEASE_S + 1)
    apply_report(engine=stage.engine, report_id=report.pk, is_over=lambda: False)
    report.refresh_from_db()
    assert (report.state, report.results) == ("applied", {"kept": 3_000, "applied": 2})
    assert ProviderRefund.objects.count() == len(lines)
    for operation in operations:
        operation.refresh_from_db()
        assert operation.status == Status.SUCCEEDED
        changes = AuditEntry.objects.filter(operation_id=operation.pk, action="provider_succeeded")
        assert changes.count() == 1
