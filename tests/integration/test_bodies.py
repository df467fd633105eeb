"""Bodies in front of Django: who may send a large one, how many at once, and what is said."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from operations.console.uploads import may_upload
from reconcile.bodies import Uploads
from reconcile.bridge import WsgiBridge

from .looping import run_apart

MB = 2**20
SIGNED_IN = {"cookie": "sessionid=good"}
FORM = {"content-type": "multipart/form-data; boundary=x"}
PATH = "/reports/upload/"


@dataclass
class Visitor:
    """One request on its way, and what came back."""

    path: str = PATH
    headers: dict[str, str] = field(default_factory=dict)
    parts: Iterable[bytes] = ()
    held: asyncio.Event | None = None
    status: int = 0
    answer_headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    async def send_to(self, bridge: WsgiBridge) -> "Visitor":
        scope = {
            "method": "POST",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "http_version": "1.1",
            "headers": [(name.encode(), value.encode()) for name, value in self.headers.items()],
        }
        parts = iter(self.parts)

        async def receive() -> dict[str, Any]:
            part = next(parts, None)
            if part is None and self.held is not None:
                await self.held.wait()
            return {"type": "http.request", "body": part or b"", "more_body": part is not None}

        await bridge(scope, receive, self.take)
        return self

    async def take(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.answer_headers = {
                name.decode(): value.decode() for name, value in message["headers"]
            }
        else:
            self.body += message["body"]


def counting(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
    start("200 OK", [])
    return [str(len(environ["wsgi.input"].read())).encode()]


def bridge_to(application: Any = counting, *, at_once: int = 2, threads: int = 4) -> WsgiBridge:
    uploads = Uploads(
        path=PATH,
        cookie="sessionid",
        allows=lambda session: session == "good",
        most_mb=3,
        beside=0,
        at_once=at_once,
    )
    return WsgiBridge(application, threads=threads, uploads=uploads)


def sent(client: Visitor, bridge: WsgiBridge | None = None) -> Visitor:
    return run_apart(client.send_to(bridge or bridge_to()))


def test_a_report_of_somebody_signed_in_may_be_large() -> None:
    client = sent(Visitor(headers=SIGNED_IN | FORM, parts=[b"x" * MB] * 3))
    assert (client.status, client.body) == (200, str(3 * MB).encode())


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (PATH, FORM),
        (PATH, FORM | {"cookie": "sessionid=made-up"}),
        (PATH, SIGNED_IN),
        ("/login/", SIGNED_IN | FORM),
        ("/api/v1/refunds", SIGNED_IN | FORM),
    ],
)
@pytest.mark.parametrize("declares", [True, False])
def test_everything_else_has_the_normal_limit(
    path: str, headers: dict[str, str], declares: bool
) -> None:
    more = {"content-length": str(MB + 1)} if declares else {}
    client = sent(Visitor(path=path, headers=headers | more, parts=[b"x" * MB, b"x"]))
    assert client.status == 413
    assert client.answer_headers["content-type"] == "application/problem+json"
    client = sent(Visitor(path=path, headers=headers, parts=[b"x" * MB]))
    assert (client.status, client.body) == (200, str(MB).encode())


@pytest.mark.parametrize("declares", [True, False])
def test_a_report_above_the_limit_that_is_set_is_answered_with_a_page(declares: bool) -> None:
    headers = SIGNED_IN | FORM | {"accept": "text/html,*/*"}
    more = {"content-length": str(3 * MB + 1)} if declares else {}
    client = sent(Visitor(headers=headers | more, parts=[b"x" * MB] * 3 + [b"x"]))
    assert client.status == 413
    assert client.answer_headers["content-type"] == "text/html; charset=utf-8"
    assert "larger than 3 MiB" in client.body.decode()


def test_a_body_that_is_far_too_large_is_not_waited_for() -> None:
    parts = iter([b"x"])
    headers = SIGNED_IN | FORM | {"content-length": str(7 * MB)}
    assert sent(Visitor(headers=headers, parts=parts)).status == 413
    assert next(parts) == b"x"


def test_who_comes_while_enough_are_taken_in_is_told_when_to_come_again() -> None:
    async def three() -> tuple[Visitor, Visitor, Visitor]:
        bridge, held = bridge_to(at_once=1), asyncio.Event()
        headers, parts = SIGNED_IN | FORM, [b"x" * MB] * 2
        first = asyncio.create_task(
            Visitor(headers=headers, parts=parts, held=held).send_to(bridge)
        )
        await asyncio.sleep(0.1)
        second = await Visitor(headers=headers, parts=parts).send_to(bridge)
        held.set()
        await first
        return await first, second, await Visitor(headers=headers, parts=parts).send_to(bridge)

    first, second, third = run_apart(three())
    assert [client.status for client in (first, second, third)] == [200, 503, 200]
    assert second.answer_headers["retry-after"] == "30"


def test_who_reads_a_large_answer_slowly_holds_no_thread() -> None:
    made = threading.Event()

    def large(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        start("200 OK", [])
        if environ["PATH_INFO"] == "/large/":
            yield from [b"x" * 2**16] * 64
            made.set()

    async def both() -> tuple[Visitor, Visitor]:
        bridge, held = bridge_to(large, threads=1), asyncio.Event()
        slow = Visitor(path="/large/")
        take = slow.take

        async def take_slowly(message: Any) -> None:
            await held.wait()
            await take(message)

        slow.take = take_slowly  # type: ignore[method-assign]
        reading = asyncio.create_task(slow.send_to(bridge))
        assert await asyncio.to_thread(made.wait, 5)
        other = await asyncio.wait_for(Visitor(path="/small/").send_to(bridge), 5)
        held.set()
        return await reading, other

    slow, other = run_apart(both())
    assert other.status == 200
    assert slow.body == b"x" * 2**22


def test_an_answer_that_breaks_off_ends_no_other_way() -> None:
    def broken(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        start("200 OK", [])
        yield b"x" * 2**17
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        sent(Visitor(), bridge_to(broken))


@pytest.mark.django_db
@pytest.mark.parametrize(("role", "may"), [("operator", True), ("viewer", False), ("", False)])
def test_only_a_session_of_somebody_who_decides_may_upload(role: str, may: bool) -> None:
    user = get_user_model().objects.create_user("Dana")
    if role:
        user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    key = client.session.session_key
    assert key is not None
    assert may_upload(key) is may
    assert not may_upload("made-up")
