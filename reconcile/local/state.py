"""`stack.json` in the data folder: what the local stack that runs there says about itself."""

import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reconcile.config import Config
from reconcile.local.secrets import local_secret


@dataclass(frozen=True, kw_only=True)
class Running:
    """The addresses of a running stack, and the process ids of its programs by name."""

    url: str
    sandbox_url: str | None
    pids: Mapping[str, int]


def write(data_dir: Path, running: Running) -> None:
    """Write it down in one step; the time that each process was made tells it from a later one."""
    import psutil

    made_at = {}
    for name, pid in running.pids.items():
        with suppress(psutil.Error):
            made_at[name] = psutil.Process(pid).create_time()
    text = json.dumps(
        {
            "url": running.url,
            "sandbox_url": running.sandbox_url,
            "pids": dict(running.pids),
            "made_at": made_at,
        },
        indent=2,
    )
    draft = data_dir / ".stack.json"
    draft.write_text(text + "\n")
    draft.replace(data_dir / "stack.json")


def read(data_dir: Path) -> Running | None:
    """Read it; None when no stack was left running there."""
    found = _load(data_dir)
    if found is None:
        return None
    return Running(url=found["url"], sandbox_url=found["sandbox_url"], pids=found["pids"])


def sandbox_webhook_secret(data_dir: Path) -> str:
    """Answer what the sandbox of this data folder signs its webhooks with."""
    return f"whsec_{local_secret(data_dir, 'sandbox-webhook-secret')}"


def with_running_sandbox(config: Config) -> Config:
    """Point a configuration without a Stripe key to the sandbox of the stack that runs, if any.

    This is how a command in another terminal reaches the same provider as the stack.
    """
    running = read(config.data_dir)
    if running is None or running.sandbox_url is None:
        return config
    return replace(
        config,
        stripe_api_base=running.sandbox_url,
        stripe_webhook_secrets=config.stripe_webhook_secrets
        or (sandbox_webhook_secret(config.data_dir),),
    )


def forget(data_dir: Path) -> None:
    (data_dir / "stack.json").unlink(missing_ok=True)


def end_leftovers(data_dir: Path, *, say: Callable[[str], None]) -> None:
    """Kill the programs of a stack that was killed itself, where the kernel has not done it."""
    import psutil

    found = _load(data_dir)
    if found is None:
        return
    for name, pid in found["pids"].items():
        try:
            left = psutil.Process(pid)
            is_it = left.create_time() == found["made_at"].get(name) and os.getpgid(pid) == pid
        except (psutil.Error, ProcessLookupError):
            continue
        if is_it:
            say(f"ending {name}, which an earlier stack left running")
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
    forget(data_dir)


def _load(data_dir: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((data_dir / "stack.json").read_text())
        return found
    except (FileNotFoundError, json.JSONDecodeError):
        return None
