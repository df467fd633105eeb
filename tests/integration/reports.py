"""Refund exports as files, the way the provider's dashboard writes them."""

import csv
import io
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from operations.domain.answers import RefundFacts
from operations.domain.money import Money
from operations.domain.report_columns import ColumnMapping
from operations.models import EvidenceSource, Operation, ReportFile
from operations.services.actors import webhook_actor
from operations.services.learning import Learned
from operations.services.report_applying import apply_report
from operations.services.report_reading import read_report
from operations.services.reporting import let_apply, receive_report
from operations.services.seeing import see_refund

from .stage import ALICE, Stage

HEADER = (
    *("id", "Amount", "Charge ID", "Created (UTC)", "Currency", "Status"),
    *("reconcile_operation_id (metadata)", "reconcile_environment (metadata)"),
)


def line(refund: str, **changes: Any) -> dict[str, str]:
    """One line, in the columns of `HEADER`; `changes` by the columns' first words."""
    given = {
        "id": refund,
        "amount": "38.00",
        "charge": "ch_elsewhere",
        "created": "2026-05-31 17:45:00",
        "currency": "usd",
        "status": "Succeeded",
        "mark": "",
        "environment": "",
    }
    return {name: str(value) for name, value in (given | changes).items()}


def line_of(operation: Operation, refund: str, **changes: Any) -> dict[str, str]:
    """The line that proves to be this operation's refund."""
    given = {
        "amount": f"{Money(operation.amount, operation.currency).major():f}",
        "charge": operation.payment.charge,
        "currency": operation.currency,
        "mark": operation.pk,
        "environment": operation.environment,
    }
    return line(refund, **(given | changes))


def known_line_of(operation: Operation, refund: str, **changes: Any) -> dict[str, str]:
    """The same, of its refund, which the provider has told us of while it was pending."""
    terms, now = operation.terms(), datetime.now(UTC)
    facts = RefundFacts(
        id=refund,
        status="pending",
        amount=terms.amount,
        currency=terms.currency,
        charge=terms.charge,
        payment_intent="",
        created=0,
        metadata={},
    )
    learned = Learned(
        source=EvidenceSource.WEBHOOK,
        summary="refund.created",
        actor=webhook_actor("evt_pending"),
        observed_at=now,
    )
    with transaction.atomic():
        see_refund(operation.account, facts, operation=operation, learned=learned, now=now)
    return line_of(operation, refund, **changes)


def export(lines: Iterable[dict[str, str]]) -> bytes:
    """The file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(list(row.values()) for row in lines)
    return text.getvalue().encode()


def given(stage: Stage, raw: bytes, *, name: str = "refunds.csv", **options: Any) -> ReportFile:
    """The report, received."""
    return receive_report(
        engine=stage.engine,
        account=stage.ask_for_the_account(),
        name=name,
        file=io.BytesIO(raw),
        mapping=options.get("mapping", ColumnMapping()),
        most_bytes=options.get("most_bytes", 2**30),
        actor=ALICE,
    )


def read(stage: Stage, raw: bytes, **options: Any) -> ReportFile:
    """The report, received and read to its end."""
    report = given(stage, raw, **options)
    while read_report(engine=stage.engine, report_id=report.pk, is_over=lambda: False):
        pass
    report.refresh_from_db()
    return report


def applied(stage: Stage, raw: bytes, **options: Any) -> ReportFile:
    """The report, received, read and applied."""
    report = read(stage, raw, **options)
    let_apply(engine=stage.engine, report_id=report.pk, actor=ALICE)
    while apply_report(engine=stage.engine, report_id=report.pk, is_over=lambda: False):
        pass
    report.refresh_from_db()
    return report


def results(report: ReportFile) -> dict[str, str]:
    """What became of each refund of a report."""
    return dict(report.lines.order_by("line").values_list("refund_id", "result"))
