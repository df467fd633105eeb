"""Names and folders of the embedded services."""

import hashlib
import os
import re
import tempfile
from pathlib import Path

DATABASE_NAME = "reconcile"
#: Owns the tables.
DATABASE_USER = "postgres"
#: Works with them.
APPLICATION_USER = "reconcile_app"

# The kernel takes about 104 bytes for a Unix socket's path; the longest name we put into the folder
# is ".s.PGSQL.5432.lock".
_LONGEST_SOCKET_DIR = 80


def socket_dir(folder: Path) -> Path:
    """Say where the socket of the service in `folder` is: in it, or in /tmp if that is too long.

    The same folder always gets the same answer, so every process on this machine finds the server
    without asking.
    """
    inside = folder / "run"
    plain = re.fullmatch(r"[A-Za-z0-9_./+-]+", str(inside))
    if plain and len(os.fsencode(inside)) <= _LONGEST_SOCKET_DIR:
        return inside
    name = f"reconcile-{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]}"
    temporary = Path(tempfile.gettempdir())
    if len(os.fsencode(temporary / name)) > _LONGEST_SOCKET_DIR:
        temporary = Path("/tmp")  # noqa: S108 - the folder is made private, or refused
    return temporary / name
