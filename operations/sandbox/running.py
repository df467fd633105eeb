"""Runs a sandbox in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from .assembly import DEFAULT_SIGNING, Assembly, Settings
from .client import SandboxControl
from .delivery import DEFAULT_BASE_DELAY_S
from .idempotency import DEFAULT_WINDOW_S
from .server import SandboxServer

POLL_S = 0.02


class Sandbox:
    """A stand-in for Stripe on a loopback port, to be used as a context manager.

    `url` is where it serves and `control` talks to its control path. `port` 0 takes a free one.
    `contract` is one of `promises.CONTRACTS`; another one raises NoSuchContractError.
    """

    def __init__(
        self,
        *,
        webhook_url: str | None = None,
        webhook_secret: str = DEFAULT_SIGNING,
        host: str = "127.0.0.1",
        port: int = 0,
        state: Path | str | None = None,
        key_window_s: float = DEFAULT_WINDOW_S,
        account_webhooks: Mapping[str, str] | None = None,
        webhook_base_delay_s: float = DEFAULT_BASE_DELAY_S,
        contract: str = "stripe",
    ) -> None:
        self._address = (host, port)
        self._parts = Assembly(
            Settings(
                webhook_url=webhook_url,
                webhook_secret=webhook_secret,
                state=Path(state) if state else None,
                key_window_s=key_window_s,
                account_webhooks=tuple((account_webhooks or {}).items()),
                webhook_base_delay_s=webhook_base_delay_s,
                contract=contract,
            )
        )
        self._server: SandboxServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """For instance `http://127.0.0.1:40123`; only while it runs, else RuntimeError."""
        if self._server is None:
            raise RuntimeError("the sandbox is not running")
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def control(self) -> SandboxControl:
        """A client of this sandbox's control path."""
        return SandboxControl(self.url)

    def start(self) -> Self:
        """Bring back the state and serve.

        Raises OSError if the port is taken, JournalUnreadableError if the state file is broken.
        """
        server = SandboxServer(self._address, self._parts)
        try:
            self._parts.start()
        except BaseException:
            server.server_close()
            raise
        self._thread = threading.Thread(
            target=server.serve_forever, args=(POLL_S,), name="sandbox", daemon=True
        )
        self._thread.start()
        self._server = server
        return self

    def stop(self) -> None:
        """Stop at once; calls that are being held lose their connection."""
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._parts.stop()
        self._server.close_connections()
        self._server.server_close()
        self._server = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
