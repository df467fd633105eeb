"""The pages of notices as they are used; at rest they are looked at with all pages."""

from dataclasses import replace
from ipaddress import ip_network

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from operations.services.engine import default_engine
from operations.services.notifying import deliver_due
from tests.integration.console.scenes import PASSWORD, Scenes, person
from tests.integration.wire import reply, wire_server

from .conftest import sign_in
from .test_every_page import faults_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_page_of_notices_can_be_read_by_everybody(
    page: Page, scenes: Scenes, settings: Settings
) -> None:
    notices = replace(settings.RECONCILE.notices, allow_networks=(ip_network("127.0.0.0/8"),))
    settings.RECONCILE = replace(settings.RECONCILE, notices=notices)
    default_engine.cache_clear()
    person("admin", "Ada Admin", password=PASSWORD)
    sign_in(page, "ada")
    faults: dict[str, list[str]] = {}

    def look(name: str) -> None:
        faults[name] = faults_of(page)

    page.goto("/notices/")
    page.get_by_role("button", name="Subscribe and show the secret").click()
    expect(page.get_by_role("alert")).to_be_focused()
    look("with errors")

    answers = [reply(500, b"not today " * 40), reply(204)]
    with wire_server(lambda server: server.answers(*answers)) as server:
        page.get_by_label("Address").fill(f"{server.url}/hooks/{'reconcile' * 12}")
        page.get_by_label("Name", exact=True).fill("Support desk <b>\u202e")
        page.get_by_label("Became unknown").check()
        page.get_by_label("Refund succeeded").check()
        page.get_by_role("button", name="Subscribe and show the secret").click()
        expect(page.locator("#secret")).to_contain_text("whsec_")
        page.get_by_role("link", name="I have it, go on").click()
        scenes.unknown(order="4417")
        deliver_due(engine=default_engine())
        scenes.ask()
        deliver_due(engine=default_engine())
        page.reload()
        look("deliveries")
        page.get_by_role("link", name="Became unknown").click()
        look("a delivery")
        page.get_by_role("button", name="Try it now").click()
        expect(page.get_by_role("status").filter(has_text="goes out again")).to_be_visible()
        page.goto("/notices/")
        page.locator("td a").first.click()
        page.get_by_text("Make a new secret…").click()
        page.get_by_text("Disable it…").click()
        look("the acts")
        page.get_by_label("Why?").fill("The receiver moves to another address.")
        page.get_by_role("button", name="Tell it nothing more").click()
        expect(page.get_by_text("Disabled: nothing more is told here")).to_be_visible()

    assert {name: found for name, found in faults.items() if found} == {}
