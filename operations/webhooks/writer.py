"""One writer a process: whatever waits is stored by one statement and one commit."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import psycopg
import structlog

from operations.services.ingesting import STORE, Delivery, columns_of

Connection = psycopg.AsyncConnection[Any]

log = structlog.get_logger(__name__)

#: The most deliveries that one statement stores.
MOST_AT_ONCE = 200
#: More than this waiting is refused at once: the store is slower than what comes in.
MOST_WAITING = 2_000
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
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._down_until = 0.0
        self._closing = False

    async def store(self, delivery: Delivery) -> bool:
        """Return after the commit: whether the event is new. Raises NotStored."""
        if self._closing or len(self._waiting) >= MOST_WAITING:
            raise NotStored
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((delivery, done))
        self._arrived.set()
        return await done

    async def close(self) -> None:
        """Store what waits, and end."""
        self._closing = True
        self._arrived.set()
        if self._task is not None:
            await self._task
        await self._drop_connection()

    async def _work(self) -> None:
        while self._waiting or not self._closing:
            if not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            batch = self._take()
            try:
                await self._store(batch)
            except Exception as error:
                log.warning("webhooks_not_stored", count=len(batch), error=str(error))
                await self._drop_connection()
                _tell(batch, NotStored())

    def _take(self) -> list[tuple[Delivery, asyncio.Future[bool]]]:
        """All that waits, up to the limit, and no event twice: one statement counts one of each."""
        batch: dict[tuple[str, str], tuple[Delivery, asyncio.Future[bool]]] = {}
        again = []
        while self._waiting and len(batch) < MOST_AT_ONCE:
            item = self._waiting.popleft()
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
                log.warning("webhook_kept_raw", event_id=delivery.facts.id, error=str(error))
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
            self._connection = await self._connect()
        except BaseException:
            self._down_until = clock() + _PAUSE_S
            raise
        return self._connection

    async def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def _tell(batch: list[tuple[Delivery, asyncio.Future[bool]]], error: Exception) -> None:
    for _, done in batch:
        if not done.done():
            done.set_exception(error)
