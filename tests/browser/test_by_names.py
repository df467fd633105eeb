"""What a screen reader says is enough to settle a refund; paper and few colours leave enough."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.integration.console.scenes import PASSWORD, Scenes, fresh, person

from .conftest import sign_in

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_whole_closing_by_accessible_names_alone(page: Page, scenes: Scenes) -> None:
    operation = scenes.unknown(order="4322", amount=7_650, made=False, looked=1, ago=400)
    person("operator", "Maya Kline", password=PASSWORD)
    sign_in(page, "maya")

    row = page.get_by_role("row", name=re.compile("4322"))
    expect(row.get_by_role("cell", name=re.compile("Unknown"))).to_be_visible()
    row.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_accessible_name(
        "$76.50 refund for order 4322"
    )
    known = page.get_by_role("region", name="What we know")
    expect(known.get_by_role("listitem").last).to_have_text(re.compile("It can still appear"))
    page.get_by_role("link", name="Close as failed…").click()

    heading = page.get_by_role("heading", name="Close the $76.50 refund for order 4322")
    expect(heading).to_be_visible()
    steps = page.get_by_role("list", name="Steps")
    expect(steps.get_by_role("listitem").first).to_have_attribute("aria-current", "step")
    outcome = page.get_by_role("group", name="What happened?")
    expect(outcome.get_by_role("radio", name="Failed")).to_be_checked()
    page.get_by_role("combobox", name="Evidence").select_option(
        label="Seen in the provider's dashboard"
    )
    page.get_by_role("textbox", name="Reference").fill("Payment page, 03:12")
    page.get_by_role("textbox", name="Note").fill("Only the capture is there.")
    page.get_by_role("button", name="Check before closing").click()

    expect(page.get_by_role("heading", name="What happens then")).to_be_visible()
    expect(page.get_by_role("definition").filter(has_text="Only the capture")).to_be_visible()
    page.get_by_role("button", name="Close as failed").click()

    expect(page.get_by_role("heading", name="Closed as failed.")).to_be_visible()
    receipt = page.get_by_role("region", name="Receipt")
    for term, told in {
        "Decided by": "Maya Kline",
        "Evidence": "Payment page, 03:12",
        "Note": "Only the capture is there.",
        "Status now": "Failed",
    }.items():
        pair = receipt.get_by_role("term").filter(has_text=re.compile(f"^{term}$"))
        expect(pair).to_be_visible()
        expect(receipt.get_by_role("definition").filter(has_text=told).first).to_be_visible()
    assert fresh(operation).status == "failed"
    counted = scenes.control.counts(payment=operation.payment.charge)
    assert (counted["refunds"], counted["sends"]) == (0, 1)


def test_a_receipt_on_paper_and_in_few_colours(page: Page, scenes: Scenes) -> None:
    operation = scenes.conflict(order="4391")
    person("viewer", "Vera", password=PASSWORD)
    page.emulate_media(color_scheme="dark")
    sign_in(page, "vera")
    page.goto(f"/operations/{operation.pk}/receipt/")

    page.emulate_media(media="print")
    for role in ("navigation", "banner", "button", "search"):
        expect(page.get_by_role(role).filter(visible=True)).to_have_count(0)
    (entry,) = page.get_by_role("link").filter(visible=True).all()
    assert entry.inner_text().isdigit()
    receipt = page.get_by_role("region", name="Receipt")
    expect(receipt).to_contain_text("Decided by")
    # Dark ink on white paper, in a dark theme too.
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ink = page.evaluate("getComputedStyle(document.querySelector('main h1')).color")
    assert max(int(part) for part in re.findall(r"\d+", ink)[:3]) < 100

    page.emulate_media(media="screen", forced_colors="active")
    status = receipt.get_by_text("Failed", exact=True)
    expect(status).to_be_visible()
    assert _edge(page, ".pill") == "solid"
    page.goto(f"/operations/{operation.pk}/audit/")
    assert _edge(page, ".tabs__link[aria-current]", "borderBottomStyle") == "solid"
    expect(page.get_by_text("Conflict", exact=True).first).to_be_visible()


def _edge(page: Page, of: str, name: str = "borderTopStyle") -> str:
    """How the edge of something is drawn, which is all that tells it apart in few colours."""
    style: str = page.evaluate(
        "([css, name]) => getComputedStyle(document.querySelector(css))[name]", [of, name]
    )
    return style
