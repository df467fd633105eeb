"""How much a client may say before it has said what it wants."""

import asyncio
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from reconcile.worker import LARGEST_HEAD, MOST_HEADERS, PatientProtocol
from tests.integration.looping import run_apart

GET = b"GET / HTTP/1.1\r\nHost: here\r\n"


async def site(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
    )
    await send({"type": "http.response.body", "body": b""})


def answers_to(*pieces: bytes) -> list[bytes]:
    """The status lines that come back before the connection closes."""

    async def talk() -> list[bytes]:
        config = uvicorn.Config(site, http=PatientProtocol, ws="none", log_config=None)
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: PatientProtocol(config, state, {}), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            said = await asyncio.wait_for(reader.read(), 5)
        except ConnectionError:
            said = b""
        finally:
            writer.close()
            server.close()
        return [line for line in said.split(b"\r\n") if line.startswith(b"HTTP/1.1")]

    return run_apart(talk())


def test_a_head_of_a_browser_is_taken() -> None:
    cookies = b"Cookie: " + b"c" * 4_000 + b"\r\n"
    assert answers_to(GET + cookies + b"Connection: close\r\n\r\n") == [b"HTTP/1.1 200 OK"]


def test_a_head_that_is_too_large_is_answered_with_431() -> None:
    refused = [b"HTTP/1.1 431 Request Header Fields Too Large"]
    assert answers_to(GET + b"X: " + b"x" * LARGEST_HEAD + b"\r\n\r\n") == refused
    assert answers_to(GET + b"X: x\r\n" * (MOST_HEADERS + 1) + b"\r\n") == refused
    address = b"GET /" + b"a" * LARGEST_HEAD + b" HTTP/1.1\r\nHost: here\r\n\r\n"
    assert answers_to(address) == refused


def test_a_header_without_an_end_is_not_kept_for_ever() -> None:
    assert answers_to(GET + b"X: ", *[b"x" * 2**16] * 64) == []


def test_trailers_without_an_end_are_not_kept_for_ever() -> None:
    head = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    assert answers_to(head, *[b"X: x\r\n"] * (MOST_HEADERS + 1)) == []


def test_the_request_after_a_large_body_has_a_head_of_its_own() -> None:
    body = b"x" * (4 * LARGEST_HEAD)
    post = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n\r\n" % len(body)
    last = GET + b"Connection: close\r\n\r\n"
    assert answers_to(post + body, post + body, last) == [b"HTTP/1.1 200 OK"] * 3
