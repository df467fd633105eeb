"""Every page in the light, in the dark and in three widths: axe finds nothing, nothing scrolls."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import axe_playwright_python
import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from tests.integration.console.scenes import PASSWORD, Scenes, person

from .conftest import sign_in
from .pages import PAGES, unlisted
from .world import make_world

Theme = Literal["light", "dark"]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
#: Details of what is fault-free are not collected, which takes most of the time.
HOW = {"runOnly": RULES, "resultTypes": ["violations"], "preload": False}
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
WIDTHS = (1440, 768, 320)
#: In which axe looks at each page. All six take a minute and a half: `make accessibility`.
LOOKS: Sequence[tuple[int, Theme]] = ((1440, "light"), (320, "dark"))
if os.environ.get("EVERY_LOOK"):
    THEMES: tuple[Theme, ...] = ("light", "dark")
    LOOKS = [(width, theme) for width in WIDTHS for theme in THEMES]


CLOSE = next(page for page in PAGES if page.name == "close")


def faults_of(page: Page) -> list[str]:
    """What is wrong with the page that is open: what axe finds, and what is too wide."""
    page.evaluate(AXE)
    faults = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        faults += [f"{width}: {over} px too wide"] if over > 0 else []
    for width, theme in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        found = page.evaluate("how => axe.run(document, how).then(r => r.violations)", HOW)
        faults += [
            f"{width} {theme}: {rule['id']}: {node['html'][:160]}"
            for rule in found
            for node in rule["nodes"][:2]
        ]
    return faults


def test_every_page_is_listed() -> None:
    assert unlisted() == []


@pytest.mark.django_db(transaction=True)
def test_every_page_can_be_read_by_everybody(
    page: Page, scenes: Scenes, settings: Settings
) -> None:
    page.emulate_media(reduced_motion="reduce")
    faults = {}
    page.goto("/login/")
    faults["login"] = faults_of(page)
    person("", "Nobody", password=PASSWORD)
    sign_in(page, "nobody")
    faults["no role"] = faults_of(page)
    page.context.clear_cookies()
    world = make_world(scenes, settings)
    sign_in(page, "maya")
    for shown in PAGES:
        page.goto(shown.path(world))
        faults[shown.name] = faults_of(page)
    page.goto(CLOSE.path(world))
    page.locator("main form .btn--primary").click()
    expect(page.get_by_role("alert").first).to_be_focused()
    faults["close, with errors"] = faults_of(page)
    page.goto("/nothing/")
    faults["not there"] = faults_of(page)

    assert {name: found for name, found in faults.items() if found} == {}
