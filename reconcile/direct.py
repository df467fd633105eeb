"""Webhooks that come whole are taken without a scope, a task and messages for each one.

Those are half of the server's work on a delivery. Whatever is not plain is the application's: what
comes in pieces, asks whether to go on, is too large, or names an account that was not seen before.
"""

import asyncio
from functools import partial
from typing import Any, cast

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from operations.webhooks import answers
from operations.webhooks.answers import Answer
from operations.webhooks.receiver import NotTaken, Receiver, account_in
from operations.webhooks.writer import NotStored
from reconcile.worker import PatientProtocol

log = structlog.get_logger(__name__)


class _Nobody:
    """Nobody waits for the parts of a delivery that came whole."""

    def set(self) -> None:
        pass


class _Delivery:
    """One delivery, as far as uvicorn asks about the request that it answers now.

    Requests behind it wait for their turn, and a shutdown waits for its end.
    """

    message_event = _Nobody()

    def __init__(self, account: str) -> None:
        self.account = account
        self.body = b""
        self.keep_alive = True
        self.disconnected = False
        self.response_complete = False


class DirectProtocol(PatientProtocol):
    """Takes what came whole; hands everything else to the application."""

    _coming: _Delivery | None = None

    def data_received(self, data: bytes) -> None:
        """Some bytes. What is not whole with them goes to the application, and so does the rest."""
        super().data_received(data)
        delivery, self._coming = self._coming, None
        if delivery is not None and self.parser is not None:
            HttpToolsProtocol.on_headers_complete(self)
            if delivery.body:
                super().on_body(delivery.body)

    def on_headers_complete(self) -> None:
        """The head of a request is there."""
        account = self._account()
        if account is None:
            super().on_headers_complete()
        else:
            self._head_came()
            self._coming = _Delivery(account)

    def on_body(self, body: bytes) -> None:
        """A part of the body; most come in one."""
        if self._coming is None:
            super().on_body(body)
        else:
            self._coming.body += body

    def on_message_complete(self) -> None:
        """The request is whole."""
        delivery, self._coming = self._coming, None
        if delivery is None:
            super().on_message_complete()
        else:
            self._take(delivery)

    def _account(self) -> str | None:
        """The account that a plain delivery is for, "" for the default one; None for all else."""
        if self.parser.get_method() != b"POST" or self._is_too_large() or self._is_busy():
            return None
        account = account_in(self.url.decode("latin-1"))
        if account is None or not self._receiver().knows(account):
            return None
        return account if self._is_plain() else None

    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _is_plain(self) -> bool:
        length = [value for name, value in self.headers if name == b"content-length"]
        small = len(length) == 1 and length[0].isdigit() and int(length[0]) <= answers.MAX_BODY
        goes_on = self.parser.should_keep_alive() and self.parser.get_http_version() == "1.1"
        return small and goes_on and not (self.expect_100_continue or self.parser.should_upgrade())

    def _receiver(self) -> Receiver:
        return cast(Receiver, cast(Any, self.app).receiver)

    def _take(self, delivery: _Delivery) -> None:
        self.cycle = cast(Any, delivery)
        signature = next(
            (value for name, value in self.headers if name == b"stripe-signature"), b""
        )
        try:
            taken = self._receiver().take(delivery.account, signature, delivery.body)
        except NotTaken as refusal:
            self._answer(delivery, refusal.answer)
        except NotStored:
            self._answer(delivery, answers.NOT_STORED)
        except Exception:
            log.exception("webhook_not_received")
            self._answer(delivery, answers.NOT_STORED)
        else:
            taken.add_done_callback(partial(self._stored, delivery))

    def _stored(self, delivery: _Delivery, taken: asyncio.Future[bool]) -> None:
        is_lost = taken.cancelled() or taken.exception() is not None
        answer = answers.NOT_STORED if is_lost else self._receiver().answer_to(taken.result())
        self._answer(delivery, answer)

    def _answer(self, delivery: _Delivery, answer: Answer) -> None:
        delivery.response_complete = True
        if delivery.disconnected or self.transport.is_closing():
            return
        headers = [*self.server_state.default_headers, *answers.headers_of(answer)]
        if not delivery.keep_alive:
            headers.append((b"connection", b"close"))
        lines = [b"%b: %b\r\n" % header for header in headers]
        self.transport.write(b"".join([STATUS_LINE[answer.status], *lines, b"\r\n", answer.body]))
        if not delivery.keep_alive:
            self.transport.close()
        self.on_response_complete()
