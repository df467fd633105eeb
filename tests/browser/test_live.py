"""What keeps itself up to date: quickly, quietly, and never under somebody's hand."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from operations.models import WORKER, Heartbeat
from operations.services.looking_up import look_up
from tests.integration.console.scenes import JOB, PASSWORD, Scenes, fresh, person

from .conftest import sign_in

pytestmark = pytest.mark.django_db(transaction=True)

#: Makes all regions ask at once, as when somebody comes back to the tab.
COME_BACK = "document.dispatchEvent(new Event('visibilitychange'))"


def come_back(page: Page) -> None:
    page.evaluate(COME_BACK)


def test_a_queue_changes_by_itself_and_holds_still_in_the_hand(page: Page, scenes: Scenes) -> None:
    first = scenes.unknown(order="4417", made=True, amount=9_900)
    second = scenes.unknown(order="4322", made=True, amount=1_200)
    person("operator", "Maya Kline", password=PASSWORD)
    sign_in(page, "maya")
    rows = page.locator("#queue tbody > *")
    expect(rows).to_have_count(2)

    # Nobody has anything in hand: what is settled leaves.
    look_up(engine=scenes.engine(), operation_id=first.pk, actor=JOB)
    come_back(page)
    expect(rows).to_have_count(1)

    # With the focus in it nothing moves; the change is offered and waits.
    page.keyboard.press("j")
    expect(page.locator(f"#row-{second.pk} a").first).to_be_focused()
    look_up(engine=scenes.engine(), operation_id=second.pk, actor=JOB)
    come_back(page)
    expect(page.get_by_role("button", name="Show changes")).to_be_visible()
    expect(page.locator("#announce")).to_have_text(re.compile("Something changed"))
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Show changes").click()
    expect(page.get_by_text("No refund is unknown")).to_be_visible()
    expect(page.locator("#held")).to_be_hidden()
    # Nothing changed since: both regions and the strip are answered without a body.
    with page.expect_response(lambda answer: answer.status == 304):
        come_back(page)


def test_an_operation_changes_by_itself_and_its_timeline_grows(page: Page, scenes: Scenes) -> None:
    operation = scenes.unknown(order="4417", made=True)
    person("viewer", "Vera", password=PASSWORD)
    sign_in(page, "vera")
    page.goto(f"/operations/{operation.pk}/")
    page.locator("#attempt-1 summary").click()
    page.locator("#attempt-1").get_by_text("Show as recorded (JSON)").click()
    expect(page.locator("#attempt-1 .raw")).to_be_visible()
    page.mouse.move(2, 2)
    length = page.locator("#timeline > *").count()

    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)
    page.evaluate("document.activeElement.blur()")
    come_back(page)

    expect(page.locator("#op-head .pill")).to_have_text("Succeeded")
    expect(page.get_by_text("The refund of $38.00 succeeded.")).to_be_visible()
    assert page.locator("#timeline > *").count() > length
    expect(page.locator("#attempt-1 .raw")).to_be_visible()


def test_what_may_be_out_of_date_is_not_decided_on(page: Page, scenes: Scenes) -> None:
    operation = scenes.unknown(order="4417", made=False)
    person("operator", "Maya Kline", password=PASSWORD)
    page.clock.install()
    sign_in(page, "maya")
    page.goto(f"/operations/{operation.pk}/close/?outcome=failed")
    page.get_by_label("Note").fill("Only the capture is there.")
    broken = "**/health-strip/"
    page.route(broken, lambda route: route.abort())

    page.clock.run_for(45_000)
    expect(page.locator("#not-updated")).to_contain_text(re.compile(r"Not updated since \d\d:\d\d"))
    page.get_by_role("button", name=re.compile("Record|Check")).press("Enter")
    expect(page).to_have_url(re.compile("/close/"))
    expect(page.get_by_label("Note")).to_have_value("Only the capture is there.")
    assert fresh(operation).status == "unknown"

    page.unroute(broken)
    come_back(page)
    expect(page.locator("#not-updated")).to_be_hidden(timeout=20_000)


def test_updates_can_be_paused(page: Page, scenes: Scenes) -> None:
    operation = scenes.unknown(order="4417", made=True)
    person("viewer", "Vera", password=PASSWORD)
    sign_in(page, "vera")
    expect(page.locator("#queue tbody > *")).to_have_count(1)
    page.get_by_role("button", name="Pause updates").click()
    page.reload()
    pause = page.get_by_role("button", name="Pause updates")
    expect(pause).to_have_attribute("aria-pressed", "true")

    asked: list[Route] = []

    def note_and_go_on(route: Route) -> None:
        asked.append(route)
        route.continue_()

    page.route("**/health-strip/", note_and_go_on)
    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)
    come_back(page)
    expect(page.locator("#queue tbody > *")).to_have_count(1)
    assert asked == []
    page.unroute("**/health-strip/")
    pause.click()
    page.mouse.move(2, 2)
    expect(page.get_by_text("No refund is unknown")).to_be_visible()


def test_the_strip_hears_of_the_worker(page: Page, scenes: Scenes) -> None:
    person("viewer", "Vera", password=PASSWORD)
    sign_in(page, "vera")
    expect(page.locator("#health")).to_contain_text("No worker has been heard of")
    Heartbeat.beat(WORKER, now=scenes.engine().clock())
    page.wait_for_timeout(2_100)
    come_back(page)
    expect(page.locator("#health")).to_contain_text("Worker is at work")


@pytest.mark.parametrize("away", ["hidden", "paused"])
def test_a_page_that_nobody_looks_at_says_no_more_that_somebody_does(
    page: Page, scenes: Scenes, away: str
) -> None:
    operation = scenes.unknown(order="4417", made=True)
    person("viewer", "Vera", password=PASSWORD)
    page.clock.install()
    sign_in(page, "vera")
    with page.expect_response("**/heartbeat/"):
        page.goto(f"/operations/{operation.pk}/")
    beats: list[str] = []
    page.on(
        "request", lambda asked: beats.append(asked.url) if "/heartbeat/" in asked.url else None
    )
    if away == "hidden":
        page.evaluate("Object.defineProperty(document, 'hidden', {value: true, writable: true})")
    else:
        page.get_by_role("button", name="Pause updates").click()
    page.clock.run_for(120_000)
    assert beats == []

    if away == "hidden":
        page.evaluate("document.hidden = false")
    else:
        page.get_by_role("button", name="Pause updates").click()
    with page.expect_response("**/heartbeat/"):
        page.clock.run_for(30_000)
