"""Pages without scripts, with the keyboard, and with a link into the middle."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from operations.services.looking_up import look_up
from tests.integration.console.scenes import JOB, PASSWORD, Scenes, fresh, person

from .conftest import sign_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page_without_scripts(browser: Browser, live_server: LiveServer) -> Iterator[Page]:
    """A page that runs no script."""
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    yield context.new_page()
    context.close()


def test_it_works_without_scripts(page_without_scripts: Page, scenes: Scenes) -> None:
    page = page_without_scripts
    operation = scenes.unknown(order="4417", made=True)
    person("operator", "Maya Kline", password=PASSWORD)
    sign_in(page, "maya")

    page.get_by_label("Status").select_option("unknown")
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("row").filter(has_text="4417").get_by_role("link").first.click()
    page.get_by_role("button", name="Look up again").click()

    expect(page.locator("#op-head .pill")).to_have_text("Succeeded")
    page.get_by_role("link", name="Audit trail").click()
    expect(page.get_by_text("Chain verified at")).to_be_visible()
    assert fresh(operation).status == "succeeded"


def test_the_keyboard_is_enough(page: Page, scenes: Scenes) -> None:
    operation = scenes.unknown(order="4417", made=False)
    person("operator", "Maya Kline", password=PASSWORD)
    sign_in(page, "maya")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type(str(operation.pk))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/operations/{operation.pk}/")
    button = page.get_by_role("button", name="Look up again")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("No refund with our reference was found on the")).to_be_visible()
    expect(button).to_be_focused()
    assert fresh(operation).lookups_made == 1


def reach(page: Page, wanted: Locator) -> None:
    """Press Tab until this has the focus."""
    for _ in range(120):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {wanted}.")


def test_a_refund_is_closed_by_the_keyboard_alone(page: Page, scenes: Scenes) -> None:
    scenes.unknown(order="4400", made=False, amount=100)
    operation = scenes.unknown(order="4417", made=False, ago=400)
    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)
    person("operator", "Maya Kline", password=PASSWORD)
    sign_in(page, "maya")

    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator("tr.is-current")).to_contain_text("4417")
    page.keyboard.press("o")
    page.wait_for_url(f"**/operations/{operation.pk}/")
    page.keyboard.press("f")
    page.wait_for_url("**/close/?outcome=failed")
    reach(page, page.get_by_label("Evidence"))
    while page.get_by_label("Evidence").input_value() != "dashboard":
        page.keyboard.press("ArrowDown")
    reach(page, page.get_by_label("Reference"))
    page.keyboard.type("Payment page, 03:12")
    # Keys are letters while somebody types.
    reach(page, page.get_by_label("Note"))
    page.keyboard.type("jkfsl? Only the capture is there.")
    reach(page, page.get_by_role("button", name="Check before closing"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("What happens then")).to_be_visible()
    reach(page, page.get_by_role("button", name="Close as failed"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Closed as failed.")).to_be_visible()

    assert fresh(operation).status == "failed"
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.get_by_role("heading", name="Queue")).to_be_visible()


def test_keys_are_shown_and_can_be_turned_off(page: Page, scenes: Scenes) -> None:
    scenes.unknown(order="4417")
    person("viewer", "Vera", password=PASSWORD)
    sign_in(page, "vera")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("Next row, previous row")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.evaluate("document.documentElement.dataset.keys = 'off'")
    page.keyboard.press("j")
    page.keyboard.press("?")
    expect(dialog).to_be_hidden()
    expect(page.locator("tr.is-current")).to_have_count(0)
    page.get_by_role("link", name="all keys").click()
    expect(dialog).to_be_visible()


def test_a_link_into_the_timeline_opens_what_it_points_at(page: Page, scenes: Scenes) -> None:
    operation = scenes.unknown(order="4417")
    person("viewer", "Vera", password=PASSWORD)
    sign_in(page, "vera")
    page.goto(f"/operations/{operation.pk}/")

    page.locator(".know__src").first.click()

    raw = page.locator("#attempt-1").get_by_text("Show as recorded (JSON)")
    expect(raw).to_be_visible()
    raw.click()
    expect(page.locator("#attempt-1 .raw")).to_contain_text('"outcome": "indeterminate"')
