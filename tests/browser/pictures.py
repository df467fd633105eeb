"""The pictures in the docs: every page in the light, in the dark, and 320 px wide.

    [ONLY=operation] make screenshots

Not a test: run on its own by its name.
"""

import io
import os
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from tests.integration.console.scenes import Scenes

from .conftest import sign_in
from .pages import PAGES, Shown
from .world import make_world

LOOKS = (("light", 1440), ("dark", 1440), ("320", 320))
#: What is below is more of the same. Pixels.
TALLEST = 2_000
#: A file may be this large, in bytes; it gets fewer colours, then fewer pixels, until it is.
LARGEST = 60_000
INTO = Path(os.environ.get("PICTURES", Path(__file__).resolve().parents[2] / "docs/screenshots"))
ONLY = os.environ.get("ONLY", "")

LOGIN = Shown("login", "login")


@pytest.mark.django_db(transaction=True)
def test_take_them(
    browser: Browser, live_server: LiveServer, scenes: Scenes, settings: Settings
) -> None:
    INTO.mkdir(parents=True, exist_ok=True)
    world = make_world(scenes, settings)
    shown = [LOGIN, *(page for page in PAGES if ONLY in page.name)]
    if not ONLY:
        for old in INTO.glob("*.png"):
            old.unlink()
    for look, width in LOOKS:
        context = browser.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if look == "dark" else "light",
            reduced_motion="reduce",
        )
        page = context.new_page()
        for each in shown:
            if each is shown[1]:
                sign_in(page, "maya")
            page.goto(each.path(world))
            tall = min(TALLEST, page.evaluate("document.documentElement.scrollHeight"))
            raw = page.screenshot(
                full_page=True, clip={"x": 0, "y": 0, "width": width, "height": tall}
            )
            (INTO / f"{each.name}-{look}.png").write_bytes(small(raw))
        context.close()


def small(raw: bytes) -> bytes:
    """The picture, with fewer colours and then smaller until the file is small enough."""
    picture = Image.open(io.BytesIO(raw)).convert("RGB")
    for colours, share in ((128, 1.0), (64, 1.0), (48, 0.8), (48, 0.6), (32, 0.5)):
        size = round(picture.width * share), round(picture.height * share)
        out = io.BytesIO()
        picture.resize(size).quantize(colours, dither=Image.Dither.NONE).save(
            out, "PNG", optimize=True
        )
        if out.tell() <= LARGEST:
            break
    return out.getvalue()
