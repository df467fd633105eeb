"""Many at once in a browser: selected by keyboard, looked at, begun, and watched."""

from contextlib import closing

import pytest
from django.db import connection
from playwright.sync_api import Page, expect

from operations.models import BulkRun
from operations.services.bulk_running import run_bulk
from operations.services.engine import default_engine
from tests.integration.console.scenes import PASSWORD, Scenes, person

from .conftest import sign_in

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_are_selected_by_keyboard_and_closed_and_the_page_tells_by_itself(
    page: Page, scenes: Scenes
) -> None:
    for order in ("4417", "4418", "4419"):
        scenes.unknown(made=False, order=order, looked=1, ago=600)
    person("operator", "Maya Kline", password=PASSWORD)
    sign_in(page, "maya")
    bar = page.get_by_role("region", name="Actions for the selected refunds")
    expect(bar).to_be_hidden()
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(bar).to_contain_text("Selected: 2")
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()
    for key in ("x", "k", "Shift+X"):
        page.keyboard.press(key)
    expect(bar).to_contain_text("Selected: 2")

    page.get_by_role("button", name="Close as failed…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Preview: Close as failed, 2 refunds")
    page.get_by_label("Evidence").select_option(label="Seen in the provider's dashboard")
    page.get_by_label("Reference").fill("incident 29")
    page.get_by_label("Note").fill("The incident of the morning.")
    page.get_by_label("Type 2 to go on").fill("2")
    page.get_by_role("button", name="Close 2 as failed").click()
    expect(page.get_by_text("0 of 2 have their result")).to_be_visible()

    with closing(connection):
        run = BulkRun.objects.get()
        run_bulk(engine=default_engine(), run_id=run.pk, is_over=lambda: False)
    expect(page.get_by_text("2 of 2 have their result")).to_be_visible()
    expect(page.get_by_role("button", name="Stop the rest")).to_be_hidden()
