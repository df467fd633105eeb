"""One writer a process: whatever waits is stored by one statement and one commit."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import psycopg
import structlog
from psycopg.types.array import ListBinaryDumper

from operations.services.ingesting import STORE, Delivery, columns_of

Connection = psycopg.AsyncConnection[Any]

log = structlog.get_logger(__name__)

#: The most deliveries that one statement stores.
MOST_AT_ONCE = 200
#: More than this waiting is refused at once: the store is slower than what comes in.
MOST_WAITING = 2_000
#: The most bytes that one statement stores, more only for one delivery; and the most that wait.
MOST_BYTES_AT_ONCE = 8 * 2**20
MOST_BYTES_WAITING = 64 * 2**20
#: How long one statement may take, in seconds. A server that does not answer is down.
LONGEST_STORE_S = 10.0
#: After a failure to connect no other try is made for this long, in seconds.
_PAUSE_S = 0.5


class NotStored(Exception):
    """The event is not stored, or nobody knows; sending it again is safe."""


class Writer:
    """Stores deliveries in the order in which they come, as many as wait at once."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._waiting: deque[tuple[Delivery, asyncio.Future[bool]]] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._down_until = 0.0
        self._closing = False

    def put(self, delivery: Delivery) -> asyncio.Future[bool]:
        """Take a delivery; after the commit the future tells whether the event is new.

        Raises NotStored, at once or from the future.
        """
        size = _size(delivery)
        is_full = len(self._waiting) >= MOST_WAITING or self._bytes + size > MOST_BYTES_WAITING
        if self._closing or is_full:
            raise NotStored
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work())
        done: asyncio.Future[bool] = loop.create_future()
        done.add_done_callback(lambda _: self._gone(size))
        self._waiting.append((delivery, done))
        self._bytes += size
        self._arrived.set()
        return done

    def _gone(self, size: int) -> None:
        self._bytes -= size

    async def close(self) -> None:
        """Store what waits, and end."""
        self._closing = True
        self._arrived.set()
        if self._task is not None:
            await asyncio.wait([self._task])
        await self._drop_connection()

    async def _work(self) -> None:
        """Until it is closed. Should it end otherwise, all that wait are told; the next one who
        stores starts it anew.
        """
        batch: list[tuple[Delivery, asyncio.Future[bool]]] = []
        try:
            await self._store_all(batch)
        finally:
            _tell([*batch, *self._waiting], NotStored())
            self._waiting.clear()

    async def _store_all(self, batch: list[tuple[Delivery, asyncio.Future[bool]]]) -> None:
        """`batch` always holds what was taken last."""
        while self._waiting or not self._closing:
            if not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            batch[:] = self._take()
            try:
                await self._store(batch)
            except Exception as error:
                _tell(batch, NotStored())
                log.warning("webhooks_not_stored", count=len(batch), error=_said(error))
                await self._drop_connection()

    def _take(self) -> list[tuple[Delivery, asyncio.Future[bool]]]:
        """All that waits, up to the limit, and no event twice: one statement counts one of each."""
        batch: dict[tuple[str, str], tuple[Delivery, asyncio.Future[bool]]] = {}
        again, left = [], MOST_BYTES_AT_ONCE
        while self._waiting and len(batch) < MOST_AT_ONCE and left > 0:
            item = self._waiting.popleft()
            left -= _size(item[0])
            if item[0].key in batch:
                again.append(item)
            else:
                batch[item[0].key] = item
        self._waiting.extendleft(reversed(again))
        return list(batch.values())

    async def _store(self, batch: list[tuple[Delivery, asyncio.Future[bool]]]) -> None:
        try:
            new = await self._run([delivery for delivery, _ in batch])
        except (psycopg.DataError, psycopg.NotSupportedError, psycopg.errors.ProgramLimitExceeded):
            await self._store_apart(batch)
            return
        for delivery, done in batch:
            if not done.done():
                done.set_result(new[delivery.key])

    async def _store_apart(self, batch: list[tuple[Delivery, asyncio.Future[bool]]]) -> None:
        """One of them holds what a column does not: each alone, that one by its raw bytes only."""
        for delivery, done in batch:
            try:
                new = await self._run([delivery])
            except (psycopg.DataError, psycopg.errors.ProgramLimitExceeded) as error:
                log.warning("webhook_kept_raw", event_id=delivery.facts.id, error=_said(error))
                new = await self._run([replace(delivery, payload="{}")])
            if not done.done():
                done.set_result(new[delivery.key])

    async def _run(self, deliveries: list[Delivery]) -> dict[tuple[str, str], bool]:
        async with asyncio.timeout(LONGEST_STORE_S):
            connection = await self._connected()
            cursor = psycopg.AsyncRawCursor(connection)
            await cursor.execute(STORE, columns_of(deliveries), prepare=True)
            rows = await cursor.fetchall()
        return {(event_id, account): is_new for event_id, account, is_new in rows}

    async def _connected(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        clock = asyncio.get_running_loop().time
        if clock() < self._down_until:
            raise NotStored("The database was just down.")
        try:
            connection = await self._connect()
        except BaseException:
            self._down_until = clock() + _PAUSE_S
            raise
        # As text, each value of a list is searched for quotes: most of what an event would cost.
        connection.adapters.register_dumper(list, ListBinaryDumper)
        self._connection = connection
        return connection

    async def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                await connection.close()


def _size(delivery: Delivery) -> int:
    """About how many bytes it holds: the body, and the text that is stored beside it."""
    return len(delivery.raw) + len(delivery.payload)


def _said(error: Exception) -> str:
    """What went wrong without what was to be stored, which a database's error repeats."""
    if isinstance(error, psycopg.Error) and error.sqlstate:
        return f"{error.sqlstate}: {error.diag.message_primary}"
    return type(error).__name__


def _tell(batch: list[tuple[Delivery, asyncio.Future[bool]]], error: Exception) -> None:
    for _, done in batch:
        if not done.done():
            done.set_exception(error)
