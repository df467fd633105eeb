"""Reports in the console: who may import, what is shown first, and what is left in the trail."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from operations.models import AuditEntry, Operation, ReportFile, ReportRow
from operations.services.engine import default_engine
from operations.services.report_applying import apply_report
from operations.services.report_reading import read_report
from tests.integration.reports import export, known_line_of, line

from .scenes import Scenes, fresh

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]


@pytest.fixture(autouse=True)
def _on_a_stage(scenes: Scenes) -> None:
    """A provider behind the pages."""


def send(client: Client, raw: bytes, *, name: str = "refunds.csv", **fields: str) -> HttpResponse:
    file = SimpleUploadedFile(name, raw, content_type="text/csv")
    return cast("HttpResponse", client.post(reverse("report-upload"), {**fields, "file": file}))


def work() -> ReportFile:
    """What the worker does."""
    report = ReportFile.objects.latest("pk")
    for step in (read_report, apply_report):
        step(engine=default_engine(), report_id=report.pk, is_over=lambda: False)
    report.refresh_from_db()
    return report


def page(client: Client, report: ReportFile, query: str = "") -> str:
    return client.get(reverse("report", args=[report.pk]) + query).content.decode()


def test_an_operator_uploads_looks_applies_and_sees_the_result(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown()
    client = signed_in("operator", "Dana Ruiz")

    response = send(
        client, export([known_line_of(operation, "re_ours"), line("re_x", currency="zz")])
    )
    report = ReportFile.objects.get()
    assert response["Location"] == reverse("report", args=[report.pk])
    assert "Reading, 0 %" in page(client, report)

    report = work()
    shown = page(client, report)
    assert "Nothing was changed yet" in shown
    assert "Apply 2 lines" in shown
    assert "“zz” is no currency that is known." in page(client, report, "?kind=bad")
    assert fresh(operation).status == "unknown"

    client.post(reverse("report-apply", args=[report.pk]))
    report.refresh_from_db()
    assert "Applying, 0 of 2 lines" in page(client, report)
    report = work()
    assert fresh(operation).status == "succeeded"
    assert str(operation.pk) in page(client, report)
    trail = AuditEntry.objects.filter(chain="system").order_by("number")
    assert [(row.action, row.actor_name, row.actor_address) for row in trail][-2:] == [
        ("report_uploaded", "Dana Ruiz", "127.0.0.1"),
        ("report_applied", "Dana Ruiz", "127.0.0.1"),
    ]


def test_the_result_can_be_downloaded_with_formulas_made_harmless(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown()
    client = signed_in("operator")
    send(client, export([known_line_of(operation, "re_ours"), line("re_2", status="=1+1")]))
    work()
    client.post(reverse("report-apply", args=[ReportFile.objects.get().pk]))
    report = work()

    response = client.get(reverse("report-results", args=[report.pk]))

    assert response["Content-Type"] == "text/csv"
    lines = b"".join(response.streaming_content).decode("utf-8-sig").splitlines()  # type: ignore[attr-defined]
    assert lines[1].startswith("2,re_ours,")
    assert lines[1].endswith(f"matches,applied,,{operation.pk}")
    assert lines[2] == "3,,,,,,,bad,bad,The status “=1+1” is none that a refund has.,"


@pytest.mark.parametrize("role", ["viewer", ""])
def test_nobody_else_uploads_or_applies(signed_in: SignIn, role: str) -> None:
    send(signed_in("operator"), export([line("re_1")]))
    report = work()
    client = signed_in(role, "Somebody Else")

    assert send(client, export([line("re_2")])).status_code == 403
    assert client.post(reverse("report-apply", args=[report.pk])).status_code == 403

    report.refresh_from_db()
    assert (ReportFile.objects.count(), report.state) == (1, "read")
    if role == "viewer":
        shown = page(client, report)
        assert "An operator can let it be applied." in shown
        assert "<button" not in shown.partition('id="report"')[2].partition("</main>")[0]


def test_a_stranger_leaves_no_file_behind() -> None:
    response = send(Client(enforce_csrf_checks=True), export([line("re_1")]))

    assert response.status_code == 403
    assert not ReportFile.objects.exists()


def test_a_file_that_a_stranger_sends_to_another_page_is_refused_too() -> None:
    client = Client(enforce_csrf_checks=True)
    client.get(reverse("login"))  # The cookie with which a form's token is read from the body.

    response = client.post(reverse("login"), {"file": SimpleUploadedFile("a.csv", b"id")})

    assert response.status_code == 403


def test_applying_twice_is_refused_and_says_so(signed_in: SignIn) -> None:
    client = signed_in("admin")
    send(client, export([line("re_1")]))
    report = work()
    client.post(reverse("report-apply", args=[report.pk]))
    work()

    response = client.post(reverse("report-apply", args=[report.pk]))

    assert response.status_code == 409
    assert "No line is applied twice." in response.content.decode()
    assert AuditEntry.objects.filter(action="report_applied").count() == 1


def test_a_file_that_is_too_large_is_said_to_be(signed_in: SignIn, settings: Settings) -> None:
    settings.RECONCILE = replace(settings.RECONCILE, report_max_mb=1)

    response = send(signed_in("operator"), b"x" * 1_200_000)

    assert response.status_code == 413
    assert "larger than 1 MiB" in response.content.decode()
    assert not ReportFile.objects.exists()


@pytest.mark.parametrize(
    ("raw", "fields", "words"),
    [
        (b"", {}, "The file is empty."),
        (export([line("re_1")]), {"account": "nobody"}, "There is no account of this name."),
    ],
)
def test_what_is_wrong_with_an_upload_is_said_in_the_form(
    signed_in: SignIn, raw: bytes, fields: dict[str, str], words: str
) -> None:
    response = send(signed_in("operator"), raw, **fields)

    assert response.status_code == 400
    assert words in response.content.decode()


def test_a_file_that_is_no_export_says_what_to_do(signed_in: SignIn) -> None:
    client = signed_in("operator")
    send(client, b"name,e-mail\nx,y\n")

    report = work()

    assert "If the file has other names, map them." in page(client, report)


def test_columns_are_mapped_in_the_form(signed_in: SignIn) -> None:
    raw = b"No,Payment,Cents,Currency,Status\nre_1,ch_1,1999,usd,succeeded\n"
    send(
        signed_in("operator"),
        raw,
        column_refund="No",
        column_charge="Payment",
        column_amount="Cents",
        amounts="minor",
    )

    work()

    assert ReportRow.objects.get().amount == 1_999


def test_what_a_file_is_called_is_shown_as_text(signed_in: SignIn) -> None:
    client = signed_in("operator")
    send(client, export([line("re_1")]), name="<img src=x>.csv")

    shown = page(client, work())

    assert "<img src=x>" not in shown
    assert "&lt;img src=x&gt;.csv" in shown
    assert Operation.objects.count() == 0


def test_lines_are_paged_by_their_number(signed_in: SignIn) -> None:
    client = signed_in("viewer")
    send(signed_in("operator", "Dana Ruiz"), export(line(f"re_{n}") for n in range(60)))

    report = work()

    assert "?kind=&amp;after=51" in page(client, report)
    assert "re_59" in page(client, report, "?after=51")
    assert "re_59" not in page(client, report)
