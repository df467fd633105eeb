"""Secrets of a local installation: made at random once, kept in its data folder."""

import os
import secrets
from pathlib import Path


def local_secret(data_dir: Path, name: str) -> str:
    """Read the secret of this name; the first process to ask makes it (384 random bits)."""
    path = data_dir / "secrets" / name
    try:
        return path.read_text()
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{name}.{os.getpid()}")
    draft.write_text(secrets.token_hex(48))
    draft.chmod(0o600)
    try:
        os.link(draft, path)  # Fails when another process was faster, and keeps that one's secret.
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text()
