"""Reads Reconcile's own settings from environment variables, without Django's settings."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from operations.domain.bulk import BulkLimits
from operations.domain.exposure import ExposureLimit
from operations.domain.notices import NoticePolicy
from reconcile.config_limits import (
    read_bulk_alone,
    read_exposure_limits,
    read_second_person_above,
)
from reconcile.config_notices import read_notices
from reconcile.config_sign_in import SignInPolicy, read_sign_in
from reconcile.config_stripe import read_api_base, read_api_key
from reconcile.environment import Environment, number_of_seconds, whole_number

# Stripe keeps an idempotency key for 24 hours at least ("Idempotent requests").
LONGEST_KEY_WINDOW_S = 86_400
SANDBOX_API_KEY = "sk_test_sandbox"

DEFAULT_LOOKUP_SCHEDULE_S = (10, 60, 300, 900, 3_600, 21_600, 86_400)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Reconcile's own settings. Names ending in `_s` are seconds, amounts are minor units."""

    environment: str
    """Goes into the provider's metadata, so that two installations on one account don't mix."""
    max_attempts_per_call: int
    max_attempts_per_operation: int
    call_deadline_s: float
    connect_timeout_s: float
    read_timeout_s: float
    backoff_base_s: float
    key_window_s: int
    key_safety_margin_s: int
    lease_s: float
    repeat_window_s: int
    """A request without a token that repeats a refund this young is answered with that refund."""
    lookup_schedule_s: tuple[int, ...]
    second_person_above: Mapping[str, int]
    """Closing by hand above this amount needs a second person, by currency."""
    bulk_alone: BulkLimits
    """How much one person may close at once with others."""
    exposure_limits: tuple[ExposureLimit, ...]
    """How much may be unknown before new operations are refused; empty: no limit."""
    token_retention_s: int
    """How long a `client_request_token` is remembered after it was given."""
    event_retention_days: int
    """How long events are kept after the end of their month."""
    event_archive_dir: Path | None
    """Where they are written before they are removed; None: nowhere."""
    notices: NoticePolicy
    sign_in: SignInPolicy
    backfill_when_quiet_s: int
    """Events are fetched when none came for this long while sends were made; 0: never."""
    report_max_mb: int
    """The largest report that is taken, in MiB."""
    stripe_api_key: str
    stripe_api_base: str | None
    """None: Stripe's own address."""
    stripe_webhook_secrets: tuple[str, ...]
    signing_key: str
    """64 hex digits that seals and bundles are signed with; "": one kept in the data folder."""
    seal_dir: Path | None
    """Where the daily seals are written; None: in the data folder."""
    seal_every_s: int
    """How often the audit trail is sealed; 0: never by itself."""
    data_dir: Path
    """Where the embedded services and the local stack keep their data."""

    @property
    def livemode(self) -> bool:
        """Whether the key moves real money; Stripe writes the mode into the key."""
        return "_live_" in self.stripe_api_key


def read(values: Mapping[str, str], *, base_dir: Path) -> Config:
    """Read all of Reconcile's own settings; raises ImproperlyConfigured with one sentence."""
    env = Environment(values)
    max_attempts_per_call = env.whole("RECONCILE_MAX_ATTEMPTS_PER_CALL", 3, least=1, most=20)
    connect_timeout_s, read_timeout_s = _timeouts(env)
    key_window_s = env.whole(
        "RECONCILE_KEY_WINDOW_S", LONGEST_KEY_WINDOW_S, least=1, most=LONGEST_KEY_WINDOW_S
    )
    api_key = read_api_key(env)
    return Config(
        environment=_environment(env),
        max_attempts_per_call=max_attempts_per_call,
        max_attempts_per_operation=_operation_budget(env, per_call=max_attempts_per_call),
        call_deadline_s=env.seconds("RECONCILE_CALL_DEADLINE_S", 30, least=0.1, most=600),
        connect_timeout_s=connect_timeout_s,
        read_timeout_s=read_timeout_s,
        backoff_base_s=env.seconds("RECONCILE_BACKOFF_BASE_S", 0.5, least=0, most=60),
        key_window_s=key_window_s,
        key_safety_margin_s=_safety_margin(env, window_s=key_window_s),
        lease_s=_lease(env, longest_send_s=connect_timeout_s + read_timeout_s),
        repeat_window_s=env.whole("RECONCILE_REPEAT_WINDOW_S", 86_400, least=0, most=30 * 86_400),
        lookup_schedule_s=_lookup_schedule(env),
        second_person_above=read_second_person_above(env),
        bulk_alone=read_bulk_alone(env),
        exposure_limits=read_exposure_limits(env),
        token_retention_s=env.whole(
            "RECONCILE_TOKEN_RETENTION_S", 90 * 86_400, least=86_400, most=3_650 * 86_400
        ),
        # The provider lists events for 30 days, and delivers them for three.
        event_retention_days=env.whole(
            "RECONCILE_EVENT_RETENTION_DAYS", 400, least=35, most=36_500
        ),
        event_archive_dir=_folder(env, "RECONCILE_EVENT_ARCHIVE_DIR"),
        notices=read_notices(env),
        sign_in=read_sign_in(env),
        backfill_when_quiet_s=env.whole(
            "RECONCILE_BACKFILL_WHEN_QUIET_S", 1_800, least=0, most=30 * 86_400
        ),
        report_max_mb=env.whole("RECONCILE_REPORT_MAX_MB", 500, least=1, most=10_000),
        stripe_api_key=api_key or SANDBOX_API_KEY,
        stripe_api_base=read_api_base(env, api_key=api_key),
        stripe_webhook_secrets=env.listed("STRIPE_WEBHOOK_SECRETS"),
        signing_key=_signing_key(env),
        seal_dir=_folder(env, "RECONCILE_SEAL_DIR"),
        seal_every_s=env.whole("RECONCILE_SEAL_EVERY_S", 86_400, least=0, most=31 * 86_400),
        data_dir=data_dir(values, base_dir=base_dir),
    )


def data_dir(values: Mapping[str, str], *, base_dir: Path) -> Path:
    """Say where local data is kept: absolute, and not necessarily there yet."""
    text = Environment(values).text("RECONCILE_DATA_DIR")
    path = Path(text or base_dir / "var").expanduser().absolute()
    if path.exists() and not path.is_dir():
        raise ImproperlyConfigured(f'RECONCILE_DATA_DIR must be a folder, and "{path}" is not one.')
    above = next(parent for parent in (path, *path.parents) if parent.exists())
    if text and not (above.is_dir() and _takes_files(above)):
        raise ImproperlyConfigured(
            f'RECONCILE_DATA_DIR must be a folder that can be made, and "{above}" takes none.'
        )
    return path


def _takes_files(folder: Path) -> bool:
    # /proc and /sys say that root may write, and refuse it.
    return os.access(folder, os.W_OK) and folder.parts[1:2] not in (("proc",), ("sys",))


def _folder(env: Environment, name: str) -> Path | None:
    text = env.text(name)
    path = Path(text).expanduser()
    if text and (not path.is_absolute() or (path.exists() and not path.is_dir())):
        raise ImproperlyConfigured(f'{name} must be the absolute path of a folder, not "{text}".')
    return path if text else None


def _signing_key(env: Environment) -> str:
    value = env.text("RECONCILE_SIGNING_KEY")
    if value and not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        # What is wrong with a secret is said without showing it.
        raise ImproperlyConfigured(
            "RECONCILE_SIGNING_KEY must be 64 hexadecimal digits, as `openssl rand -hex 32` prints."
        )
    return value.lower()


def _environment(env: Environment) -> str:
    value = env.text("RECONCILE_ENVIRONMENT", "local")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", value):
        raise ImproperlyConfigured(
            "RECONCILE_ENVIRONMENT must be up to 40 letters, digits, dots, dashes or underscores, "
            f'not "{value}".'
        )
    return value


def _operation_budget(env: Environment, *, per_call: int) -> int:
    name = "RECONCILE_MAX_ATTEMPTS_PER_OPERATION"
    budget = env.whole(name, max(6, per_call), least=1, most=100)
    if budget < per_call:
        raise ImproperlyConfigured(
            f"{name} must be at least RECONCILE_MAX_ATTEMPTS_PER_CALL ({per_call}), not {budget}."
        )
    return budget


def _timeouts(env: Environment) -> tuple[float, float]:
    name = "RECONCILE_REQUEST_TIMEOUT_S"
    parts = env.listed(name, ("3", "10"))
    if len(parts) != 2:
        raise ImproperlyConfigured(
            f'{name} must be two numbers of seconds, to connect and to read, such as "3,10", '
            f'not "{",".join(parts)}".'
        )
    connect, read_ = (number_of_seconds(name, part, least=0.05, most=300) for part in parts)
    return connect, read_


def _safety_margin(env: Environment, *, window_s: int) -> int:
    name = "RECONCILE_KEY_SAFETY_MARGIN_S"
    # A window that was shortened (in tests, say) shortens the default margin with it.
    margin_s = env.whole(name, min(900, window_s // 2), least=0, most=LONGEST_KEY_WINDOW_S)
    if margin_s >= window_s:
        raise ImproperlyConfigured(
            f"{name} must be less than RECONCILE_KEY_WINDOW_S ({window_s}), not {margin_s}."
        )
    return margin_s


def _lease(env: Environment, *, longest_send_s: float) -> float:
    name = "RECONCILE_LEASE_S"
    lease_s = env.seconds(name, longest_send_s + 20, least=0.1, most=3_600)
    if lease_s <= longest_send_s:
        raise ImproperlyConfigured(
            f"{name} must be longer than the longest send, which RECONCILE_REQUEST_TIMEOUT_S "
            f"makes {longest_send_s:g} seconds, not {lease_s:g}."
        )
    return lease_s


def _lookup_schedule(env: Environment) -> tuple[int, ...]:
    name = "RECONCILE_LOOKUP_SCHEDULE_S"
    parts = env.listed(name)
    if not parts:
        return DEFAULT_LOOKUP_SCHEDULE_S
    schedule = tuple(whole_number(name, part, least=1, most=30 * 86_400) for part in parts)
    if any(later <= earlier for earlier, later in pairwise(schedule)):
        raise ImproperlyConfigured(
            f'{name} must be seconds in rising order, such as "10,60,300", not "{",".join(parts)}".'
        )
    return schedule
