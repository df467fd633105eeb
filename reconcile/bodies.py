"""Bodies of requests, read to their end before Django sees them; the large ones go to disk.

Only reports of people who are signed in may be large, and only a few of them are read at once.
Everything else has the normal limit, whatever its type and address.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import escape
from typing import IO, Any

from django.http.cookie import parse_cookie

#: How long a client may pause while it sends a request or takes its answer, in seconds.
LONGEST_PAUSE_S = 10.0
#: A larger body goes to disk; and no body that is no report may be larger. Bytes.
IN_MEMORY = 2**20
#: When those who are turned away may come again, in seconds.
_RETRY_AFTER_S = 30

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title} · Reconcile</title></head>
<body><main><h1>{title}</h1><p>{words}</p><p><a href="/">To the queue</a></p></main></body></html>
"""


class CutOff(Exception):
    """The client went away or paused for too long."""


class BodyRefused(Exception):
    """The body is not taken. `words` say so to people, `code` to programs."""

    def __init__(self, status: int, code: str, title: str, words: str) -> None:
        self.status = status
        self.code = code
        self.title = title
        self.words = words
        super().__init__(words)

    def answer(self, headers: Mapping[bytes, bytes]) -> tuple[bytes, list[tuple[bytes, bytes]]]:
        """The body, and headers: a page for a browser, a problem document for the rest."""
        if b"text/html" in headers.get(b"accept", b""):
            text = _PAGE.format(title=escape(self.title), words=escape(self.words))
            content_type = b"text/html; charset=utf-8"
        else:
            text = json.dumps(
                {
                    "type": f"urn:reconcile:problem:{self.code}",
                    "title": self.title,
                    "status": self.status,
                    "code": self.code,
                    "detail": self.words,
                }
            )
            content_type = b"application/problem+json"
        body = text.encode()
        more = [
            (b"content-type", content_type),
            (b"content-length", str(len(body)).encode()),
            (b"content-security-policy", b"default-src 'none'"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-frame-options", b"DENY"),
            (b"referrer-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),
        ]
        if self.status == 503:
            more.append((b"retry-after", str(_RETRY_AFTER_S).encode()))
        return body, more


@dataclass(frozen=True, kw_only=True)
class Uploads:
    """Where large files are taken: posted to `path` by somebody who may.

    `allows` says whether the session that the cookie named `cookie` holds is such a person's; it is
    asked in a thread. `most_mb`: how large a file may be, in MiB; `beside`: what its form may hold
    beside it, in bytes. `at_once`: how many are taken at once.
    """

    path: str
    cookie: str
    allows: Callable[[str], bool]
    most_mb: int
    beside: int = 2**16
    at_once: int = 2

    @property
    def most(self) -> int:
        """How large a body may be, in bytes."""
        return self.most_mb * 2**20 + self.beside

    def too_large(self) -> BodyRefused:
        """Said of a report, which may be larger than anything else."""
        return BodyRefused(
            413,
            "body_too_large",
            "The file is too large",
            f"The file is larger than {self.most_mb} MiB, and nothing of it was kept. Split it, or"
            " export fewer columns.",
        )

    def session_of(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> str:
        """The session that this request would upload under; "" when it is no upload."""
        kind = headers.get(b"content-type", b"").lower()
        if scope["method"] != "POST" or scope["path"] != self.path:
            return ""
        if not kind.startswith(b"multipart/form-data"):
            return ""
        return parse_cookie(headers.get(b"cookie", b"").decode("latin-1")).get(self.cookie, "")


_TOO_LARGE = BodyRefused(
    413,
    "body_too_large",
    "This is too large",
    "What was sent is larger than is taken here, and nothing of it was kept. If it is a report,"
    " sign in as an operator and send it again.",
)
_BUSY = BodyRefused(
    503,
    "uploads_busy",
    "Other files are being taken in",
    "Nothing of this file was kept. Send it again in half a minute.",
)


class Bodies:
    """Reads bodies. `ask` runs a question in a thread, as the database needs it."""

    def __init__(
        self, uploads: Uploads | None, ask: Callable[[Callable[[], bool]], Awaitable[bool]]
    ) -> None:
        self._uploads = uploads
        self._ask = ask
        self._under_way = 0

    @asynccontextmanager
    async def read(
        self,
        scope: Mapping[str, Any],
        headers: Mapping[bytes, bytes],
        receive: Callable[[], Awaitable[Any]],
        body: IO[bytes],
    ) -> AsyncIterator[int]:
        """Read a body to its end; its length in bytes. Raises CutOff and BodyRefused.

        A large one counts as under way until the request is answered.

        A body that is less than twice too large is read to its end and forgotten, because a
        browser shows no answer that comes while it sends.
        """
        length = _declared(headers)
        uploads = self._uploads
        session = uploads.session_of(scope, headers) if uploads else ""
        # What is small needs no leave. What does not say how large it is may be large.
        is_large = session and (length is None or length > IN_MEMORY)
        if uploads is None or not is_large or not await self._ask(lambda: uploads.allows(session)):
            yield await _read(receive, body, length, IN_MEMORY, _TOO_LARGE)
            return
        if self._under_way >= uploads.at_once:
            await _read(receive, body, length, 0, _BUSY, bear=uploads.most)
        self._under_way += 1
        try:
            yield await _read(receive, body, length, uploads.most, uploads.too_large())
        finally:
            self._under_way -= 1


def _declared(headers: Mapping[bytes, bytes]) -> int | None:
    declared = headers.get(b"content-length", b"")
    return int(declared) if declared.isdigit() else None


async def _read(
    receive: Callable[[], Awaitable[Any]],
    body: IO[bytes],
    declared: int | None,
    most: int,
    refusal: BodyRefused,
    *,
    bear: int = 0,
) -> int:
    """Keep up to `most` bytes; of a longer body nothing is kept, and not all of it is waited for.

    `bear`: how many bytes are read and forgotten at most; as many as would have been kept, or so.
    """
    bear = bear or 2 * most
    if declared is not None and declared > bear:
        raise refusal
    length, keep = 0, declared is None or declared <= most
    while True:
        try:
            async with asyncio.timeout(LONGEST_PAUSE_S):
                message = await receive()
        except TimeoutError:
            raise CutOff from None
        if message["type"] == "http.disconnect":
            raise CutOff
        part = message.get("body", b"")
        length += len(part)
        if keep and length > most:
            keep = False
            body.seek(0)
            body.truncate()
        if keep:
            body.write(part)
        elif length > bear:
            raise refusal
        if not message.get("more_body", False):
            break
    if not keep:
        raise refusal
    body.seek(0)
    return length
