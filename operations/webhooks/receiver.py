"""The endpoint as an ASGI application of its own, in front of Django.

An event is acknowledged after its commit. All that arrive while one commit is under way share the
next one: that is what makes many senders cheap.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any

import structlog
from django.db import connection

from operations.jobs import wake_inbox
from operations.services.engine import Engine
from operations.services.ingesting import (
    Delivery,
    EventAccountUnknown,
    EventRefused,
    named_account,
    read_delivery,
)
from operations.webhooks import answers
from operations.webhooks.answers import Answer
from operations.webhooks.writer import NotStored, Writer

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

log = structlog.get_logger(__name__)

#: How long a sender may pause within a body, and how long a body may take in all, in seconds.
LONGEST_PAUSE_S = 10.0
LONGEST_BODY_S = 30.0
#: One message to the broker tells of all events that came in this time, in seconds.
WAKE_EVERY_S = 0.2
#: How long the account behind a name is remembered, in names: accounts never change.
_MOST_NAMES = 1_000
_ADDRESS = re.compile(r"/webhooks/stripe/(?:(?P<account>[^/]+)/)?")


class _TooLarge(Exception):
    pass


class _CutOff(Exception):
    pass


class Receiver:
    """Takes deliveries to /webhooks/stripe/ and /webhooks/stripe/{account}/."""

    def __init__(self, *, engine: Callable[[], Engine], writer: Writer) -> None:
        self._engine = engine
        self._writer = writer
        self._waker = Waker()
        self._accounts: dict[str, str] = {}

    @staticmethod
    def serves(path: str) -> bool:
        """Whether this address is one of the endpoint's."""
        return _ADDRESS.fullmatch(path) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One delivery."""
        try:
            answer = await self._received(scope, receive)
        except Exception:
            log.exception("webhook_not_received")
            answer = answers.NOT_STORED
        # The rest of a body that was not read would be taken for the next request.
        closes = answer in (answers.TOO_LARGE, answers.CUT_OFF)
        await _send(answer, send, closes=closes)

    async def close(self) -> None:
        """Store what was taken, and end."""
        await self._writer.close()
        await self._waker.close()

    async def _received(self, scope: Scope, receive: Receive) -> Answer:
        if scope["method"] != "POST":
            return answers.ONLY_POST
        headers = {name: value for name, value in scope["headers"] if name in _READ}
        try:
            raw = await _body(headers, receive)
        except _TooLarge:
            return answers.TOO_LARGE
        except _CutOff:
            return answers.CUT_OFF
        found = _ADDRESS.fullmatch(scope["path"])
        account = (found["account"] or "") if found else ""
        try:
            delivery = self._read(raw, headers, account)
            if account and not delivery.account:
                delivery = replace(delivery, account=await self._named(account))
        except EventRefused as error:
            log.warning("webhook_refused", reason=str(error), account=account)
            return answers.refused(str(error))
        except EventAccountUnknown:
            return answers.NO_ACCOUNT
        try:
            is_new = await self._writer.store(delivery)
        except NotStored:
            return answers.NOT_STORED
        if is_new:
            self._waker.events_wait()
        return answers.STORED if is_new else answers.STORED_BEFORE

    def _read(self, raw: bytes, headers: Mapping[bytes, bytes], account: str) -> Delivery:
        engine = self._engine()
        return read_delivery(
            secrets=engine.webhook_secrets,
            now=engine.clock(),
            raw=raw,
            signature=headers.get(b"stripe-signature", b"").decode("latin-1"),
            endpoint_account=account,
        )

    async def _named(self, name: str) -> str:
        if name not in self._accounts:
            account = await asyncio.to_thread(_account_of, self._engine(), name)
            if len(self._accounts) >= _MOST_NAMES:
                self._accounts.clear()
            self._accounts[name] = account[:64]
        return self._accounts[name]


def _account_of(engine: Engine, name: str) -> str:
    """In a thread that keeps no connection."""
    try:
        return named_account(engine, name)
    finally:
        connection.close()


class Waker:
    """Tells the workers that events wait, once for many of them."""

    def __init__(self) -> None:
        self._due = False
        self._task: asyncio.Task[None] | None = None

    def events_wait(self) -> None:
        """Send the message soon; costs nothing when one is about to be sent."""
        self._due = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._wake())

    async def close(self) -> None:
        """Send what is still to be told."""
        if self._task is not None:
            await self._task

    async def _wake(self) -> None:
        while self._due:
            self._due = False
            await asyncio.to_thread(wake_inbox)
            await asyncio.sleep(WAKE_EVERY_S)


_READ = frozenset((b"stripe-signature", b"content-length"))


async def _body(headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
    """The whole body. Raises _TooLarge as soon as that is certain, and _CutOff."""
    declared = headers.get(b"content-length", b"0")
    if declared.isdigit() and int(declared) > answers.MAX_BODY:
        raise _TooLarge
    try:
        async with asyncio.timeout(LONGEST_PAUSE_S) as limit:
            return await _parts(receive, limit)
    except TimeoutError:
        raise _CutOff from None


async def _parts(receive: Receive, limit: asyncio.Timeout) -> bytes:
    """`limit` ends the waiting for the first of them; each one that comes puts it off."""
    parts, size = [], 0
    clock = asyncio.get_running_loop().time
    ends_at = 0.0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _CutOff
        part = message.get("body", b"")
        size += len(part)
        if size > answers.MAX_BODY:
            raise _TooLarge
        parts.append(part)
        if not message.get("more_body", False):
            return part if len(parts) == 1 else b"".join(parts)
        now = clock()
        ends_at = ends_at or now + LONGEST_BODY_S
        limit.reschedule(min(now + LONGEST_PAUSE_S, ends_at))


async def _send(answer: Answer, send: Send, *, closes: bool) -> None:
    headers = [
        (b"content-type", answer.content_type.encode()),
        (b"content-length", str(len(answer.body)).encode()),
    ]
    if answer.retry_after_s is not None:
        headers.append((b"retry-after", str(answer.retry_after_s).encode()))
    if answer is answers.ONLY_POST:
        headers.append((b"allow", b"POST"))
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
