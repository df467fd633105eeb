"""Somebody who was woken at three settles two refunds in a browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from operations.models import AuditEntry
from tests.integration.console.scenes import PASSWORD, Scenes, fresh, person

from .conftest import sign_in

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_operator_settles_what_is_unknown(page: Page, scenes: Scenes) -> None:
    lost = scenes.unknown(order="4417", amount=3_800, captured=11_200, made=True, again=1)
    absent = scenes.unknown(order="4322", amount=7_650, made=False, ago=400)
    person("operator", "Maya Kline", password=PASSWORD)
    sign_in(page, "maya")

    # The queue shows both; order 4417 is found in it and opened.
    row = page.get_by_role("row").filter(has_text="4417")
    expect(row).to_contain_text("Unknown")
    expect(row).to_contain_text("Provider answered 500")
    expect(row).to_contain_text("$38.00")
    row.get_by_role("link").first.click()
    expect(page.get_by_text("Nobody knows yet whether $38.00 moved.")).to_be_visible()
    expect(page.get_by_text("Tool call toolu_02", exact=True)).to_be_visible()

    # Looking up reads the provider and finds the refund; nothing is sent.
    page.get_by_role("button", name="Look up again").click()
    expect(page.get_by_text("The refund of $38.00 succeeded.")).to_be_visible()
    expect(page.locator("#op-head .pill")).to_have_text("Succeeded")
    expect(page.locator("#announce")).to_have_text("A refund with our reference is on the payment.")
    counted = scenes.control.counts(payment=lost.payment.charge)
    assert (counted["refunds"], counted["amount"], counted["sends"]) == (1, 3_800, 1)
    assert fresh(lost).status == "succeeded"

    # The other one is not there. A look-up says so, and a person closes it on that.
    page.get_by_role("searchbox").fill("4322")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Look up again").click()
    expect(
        page.get_by_text(re.compile("No refund with our reference was found on the payment"))
    ).to_be_visible()
    page.get_by_role("link", name="Close as failed…").click()
    expect(page.get_by_role("radio", name="Failed")).to_be_checked()
    page.get_by_label("Note").fill("Only the capture is on the charge, seen at 03:12.")
    page.get_by_role("button", name="Check before closing").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose what you saw.")
    expect(page.get_by_label("Note")).to_have_value(
        "Only the capture is on the charge, seen at 03:12."
    )
    # Absence alone closes nothing here; what the person saw with their own eyes does.
    evidence = page.get_by_label("Evidence")
    expect(evidence.get_by_role("option", name=re.compile("Absent"))).to_have_count(0)
    evidence.select_option("dashboard")
    page.get_by_label("Reference").fill("Dashboard, payment page, 03:12")
    page.get_by_role("button", name="Check before closing").click()
    page.get_by_role("button", name="Close as failed").click()

    # The receipt, and the audit trail behind it.
    expect(page.get_by_role("heading", name="Closed as failed.")).to_be_visible()
    expect(page.get_by_text("Only the capture is on the charge")).to_be_visible()
    page.get_by_role("link", name="Open the operation").click()
    page.get_by_role("link", name="Audit trail").click()
    trail = page.locator(".audit")
    expect(trail).to_contain_text("Maya Kline closed it as failed, Unknown → Failed")
    expect(page.get_by_text("Chain verified at")).to_be_visible()
    expect(page).to_have_url(re.compile("/audit/$"))
    assert fresh(absent).status == "failed"
    assert AuditEntry.objects.filter(operation_id=absent.pk, action="closed_failed").count() == 1
    counted = scenes.control.counts(payment=absent.payment.charge)
    assert (counted["refunds"], counted["sends"]) == (0, 1)

    # The queue is empty now.
    page.get_by_role("link", name="Queue", exact=True).first.click()
    expect(page.get_by_text("No refund is unknown")).to_be_visible()
