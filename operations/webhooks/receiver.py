"""The endpoint as an ASGI application of its own, in front of Django.

An event is acknowledged after its commit. All that arrive while one commit is under way share the
next one: that is what makes many senders cheap. A delivery that came whole is taken without the
application (`reconcile.worker`), by the same code.
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


class NotTaken(Exception):
    """A delivery is refused; `answer` says why."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(answer.status)


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
        signature = headers.get(_SIGNATURE, b"")
        account = account_in(scope["path"]) or ""
        try:
            if not self.knows(account):
                # Only who is proven to be the provider may have us look for a name.
                self._read(raw, signature, account)
                self._remember(
                    account, await asyncio.to_thread(_account_of, self._engine(), account)
                )
            taken = self.take(account, signature, raw)
            return self.answer_to(await taken)
        except NotTaken as refusal:
            return refusal.answer
        except EventAccountUnknown:
            return answers.NO_ACCOUNT
        except NotStored:
            return answers.NOT_STORED

    def knows(self, account: str) -> bool:
        """Whether a delivery to the account of this name can be taken without asking the store."""
        return not account or account in self._accounts

    def take(self, account: str, signature: bytes, raw: bytes) -> asyncio.Future[bool]:
        """Give one whole delivery to the writer; the future tells after the commit if it is new.

        `account`: the name in the address, one that it knows. Raises NotTaken and NotStored, and so
        may the future.
        """
        delivery = self._read(raw, signature, account)
        if account and not delivery.account:
            delivery = replace(delivery, account=self._accounts[account])
        return self._writer.put(delivery)

    def answer_to(self, is_new: bool) -> Answer:
        """What the sender of a stored delivery is told; the workers are told, too."""
        if is_new:
            self._waker.events_wait()
        return answers.STORED if is_new else answers.STORED_BEFORE

    def _read(self, raw: bytes, signature: bytes, account: str) -> Delivery:
        engine = self._engine()
        try:
            return read_delivery(
                secrets=engine.webhook_secrets,
                now=engine.clock(),
                raw=raw,
                signature=signature.decode("latin-1"),
                endpoint_account=account,
            )
        except EventRefused as error:
            log.warning("webhook_refused", reason=str(error), account=account)
            raise NotTaken(answers.refused(str(error))) from error

    def _remember(self, name: str, account: str) -> None:
        if len(self._accounts) >= _MOST_NAMES:
            self._accounts.clear()
        self._accounts[name] = account[:64]


def account_in(path: str) -> str | None:
    """The account's name in one of the endpoint's addresses, "" for none; None for others."""
    found = _ADDRESS.fullmatch(path)
    return None if found is None else found["account"] or ""


def _account_of(engine: Engine, name: str) -> str:
    """In a thread that keeps no connection. Raises EventAccountUnknown."""
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


_SIGNATURE, _LENGTH = b"stripe-signature", b"content-length"
_READ = frozenset((_SIGNATURE, _LENGTH))


async def _body(headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
    """The whole body. Raises _TooLarge as soon as that is certain, and _CutOff."""
    declared = headers.get(_LENGTH, b"0")
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
    headers = answers.headers_of(answer)
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
