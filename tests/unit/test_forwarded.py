"""Whose word counts on where a request comes from."""

from collections.abc import Callable
from typing import Any

import pytest

from reconcile.bridge import WsgiBridge
from tests.integration.looping import run_apart

PROXY = "10.0.0.1"


def told(peer: str, **headers: str) -> tuple[str, str]:
    """The address and the scheme that the site is told."""
    seen: list[tuple[str, str]] = []

    def site(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        seen.append((environ["REMOTE_ADDR"], environ["wsgi.url_scheme"]))
        start("200 OK", [])
        return []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        pass

    scope = {
        "method": "GET",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "http_version": "1.1",
        "client": (peer, 4_417),
        "headers": [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ],
    }
    bridge = WsgiBridge(site, threads=1, trusted=frozenset([PROXY, "10.0.0.2", "::1"]))
    run_apart(bridge(scope, receive, send))
    bridge.close()
    return seen[0]


@pytest.mark.parametrize(
    ("forwarded", "came"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("1.2.3.4, 203.0.113.7", "203.0.113.7"),
        ("203.0.113.7, 10.0.0.2", "203.0.113.7"),
        ("2001:DB8::7", "2001:db8::7"),
        ("203.0.113.7, nonsense", PROXY),
        ("203.0.113.7,", PROXY),
        ("10.0.0.2", PROXY),
        ("", PROXY),
        ("' OR 1=1", PROXY),
    ],
)
def test_who_came_is_the_last_that_is_no_proxy(forwarded: str, came: str) -> None:
    assert told(PROXY, x_forwarded_for=forwarded, x_forwarded_proto="https") == (came, "https")


def test_nobody_else_is_believed() -> None:
    given = {"x_forwarded_for": "1.2.3.4", "x_forwarded_proto": "https"}
    assert told("203.0.113.9", **given) == ("203.0.113.9", "http")
