"""Every page, wide and light, narrow and dark: axe finds nothing, nothing scrolls sideways."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from operations.services.looking_up import look_up
from tests.integration.console.scenes import JOB, PASSWORD, Scenes, fresh, person

from .conftest import sign_in

pytestmark = pytest.mark.django_db(transaction=True)

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Details of what is fault-free are not collected, which takes most of the time.
HOW = {"runOnly": RULES, "resultTypes": ["violations"], "preload": False}


def faults_of(page: Page) -> list[str]:
    """What axe finds, and whether the page is wider than the window."""
    found = Axe().run(page, options=HOW).response["violations"]
    faults = [f"{rule['id']}: {rule['nodes'][0]['html'][:160]}" for rule in found]
    width = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return [*faults, f"{width} px too wide"] if width > 0 else faults


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (320, "dark")])
def test_every_page_can_be_read_by_everybody(
    page: Page, scenes: Scenes, width: int, theme: str
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    person("operator", "Maya Kline", password=PASSWORD)
    person("", "Nobody", password=PASSWORD)
    faults: dict[str, list[str]] = {}

    def look(name: str, path: str = "") -> None:
        if path:
            page.goto(path)
        faults[name] = faults_of(page)

    look("sign in", "/login/")
    sign_in(page, "nobody")
    look("no role")
    page.context.clear_cookies()
    sign_in(page, "maya")
    look("empty queue")
    look("nothing found", "/search/?q=nothing")
    look("not there", "/nothing/")

    unknown = scenes.unknown(order="4417 <b>\u202e", made=True, again=1, looked=0)
    conflict, waiting = scenes.conflict(), scenes.unknown(made=False, currency="kwd")
    scenes.mismatch(currency="jpy")
    scenes.proposed(waiting)
    at = f"/operations/{unknown.pk}/"
    look("queue", "/")
    look("unknown", at)
    look("conflict", f"/operations/{conflict.pk}/")
    look("audit trail", f"/operations/{conflict.pk}/audit/")
    look("receipt", f"/operations/{conflict.pk}/receipt/")
    look("proposal", f"/operations/{waiting.pk}/")
    look("close", f"{at}close/")
    page.get_by_role("button", name="Check before closing").click()
    look("close, with errors")
    expect(page.get_by_role("alert")).to_be_focused()
    page.get_by_role("radio", name="Failed").check()
    page.get_by_label("Evidence").select_option("dashboard")
    page.get_by_label("Reference").fill("case 1")
    page.get_by_label("Note").fill("Seen by me.")
    look_up(engine=scenes.engine(), operation_id=unknown.pk, actor=JOB)
    page.get_by_role("button", name="Check before closing").click()
    expect(page.get_by_role("alert")).to_contain_text("settled while you were deciding")
    look("overtaken")

    assert {name: found for name, found in faults.items() if found} == {}


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
