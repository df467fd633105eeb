"""A browser, and the console it looks at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from tests.browser.chromium import ARGUMENTS
from tests.integration.console.scenes import PASSWORD, Scenes, scenes_on


@pytest.fixture(scope="session")
def browser(chromium_path: Path) -> Iterator[Browser]:
    """One Chromium for the run."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium_path), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def scenes(settings: Settings) -> Iterator[Scenes]:
    """A sandbox of its own, and settings that lead to it."""
    with scenes_on(settings) as scenes:
        yield scenes


@pytest.fixture
def page(browser: Browser, live_server: LiveServer) -> Iterator[Page]:
    """A page of a fresh visitor. What the console of the browser complains of fails the test."""
    context = browser.new_context(base_url=live_server.url, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    complaints: list[str] = []
    page.on(
        "console",
        lambda message: (
            complaints.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    # The browser reports every answer that is not a success by itself; those are asked for.
    assert [text for text in complaints if "the server responded with" not in text] == []


def sign_in(page: Page, name: str) -> None:
    """Sign in by the form."""
    page.goto("/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")
