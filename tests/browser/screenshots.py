"""Take the pictures in the docs: plays the demo on a data folder of its own and looks at it.

    python -m tests.browser.screenshots [--into docs/screenshots]

Each page is taken in the light, in the dark, and 320 px wide.
"""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.chromium import ARGUMENTS

ROOT = Path(__file__).resolve().parents[2]
LOOKS: tuple[tuple[str, int, str], ...] = (
    ("light", 1440, "light"),
    ("dark", 1440, "dark"),
    ("320", 320, "light"),
)


@contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """A demo that has been played: its address, and the operator's password."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--port", str(port)],
            cwd=ROOT,
            env=os.environ | {"RECONCILE_DATA_DIR": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        password = ""
        try:
            for line in process.stdout:
                print(line, end="")
                login = re.match(r"\s+operator\s+(\S+)", line)
                password = login[1] if login else password
                if line.startswith("Ctrl-C"):
                    break
            yield f"http://127.0.0.1:{port}", password
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def pages(page: Page, password: str) -> Iterator[str]:
    """Go from page to page as an operator does; the name of each."""
    page.goto("/")
    yield "login"
    page.get_by_label("Name").fill("operator")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")
    yield "queue"
    page.goto("/search/?q=4420")
    yield "operation"
    page.get_by_role("link", name=re.compile("Close as failed")).first.click()
    yield "close"
    page.goto("/search/?q=4417")
    yield "operation-settled"


def take(browser: Browser, url: str, password: str, into: Path) -> None:
    """All pages in all looks."""
    for name, width, scheme in LOOKS:
        context = browser.new_context(
            base_url=url,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = context.new_page()
        for what in pages(page, password):
            page.wait_for_load_state("networkidle")
            page.screenshot(path=into / f"{what}-{name}.png", full_page=True)
        context.close()


def main() -> None:
    """Play, look, and put the pictures where they belong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "screenshots")
    into = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with demo() as (url, password), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        take(browser, url, password, into)
        browser.close()


if __name__ == "__main__":
    main()
