"""Sealing: what all chains of the audit trail are now, signed, in a file to be kept elsewhere."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import structlog
from django.conf import settings
from django.db import connection, transaction

from operations.domain.audit import Actor
from operations.domain.seals import FIRST, FORMAT, Head, Heads, Seal, SignedSeal
from operations.models import AuditEntry, AuditSeal
from operations.services.engine import Engine
from operations.signatures import SigningKey
from reconcile.local.secrets import local_secret

log = structlog.get_logger(__name__)

#: How many seals stay in the data folder. A folder that was named is left alone: nothing leaves it.
SEALS_KEPT = 35
_AT_ONCE = 5_000


def signing_key() -> SigningKey:
    """The key that seals and bundles are signed with, made at random where none was given."""
    given = settings.RECONCILE.signing_key
    if given:
        return SigningKey(bytes.fromhex(given))
    secret = local_secret(settings.RECONCILE.data_dir, "signing-key")
    return SigningKey(hashlib.sha256(secret.encode()).digest())


def seal_is_due(*, engine: Engine, every_s: int) -> bool:
    """Whether the last seal is older than that; never with 0."""
    last = AuditSeal.objects.order_by("-number").first()
    oldest = engine.clock() - timedelta(seconds=every_s)
    return every_s > 0 and (last is None or last.sealed_at <= oldest)


def seal_to_folder(*, engine: Engine, actor: Actor) -> Path:
    """Seal into a file of its own, in the folder for seals. Raises OSError."""
    named = settings.RECONCILE.seal_dir
    folder = named or settings.RECONCILE.data_dir / "seals"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"seal-{engine.clock():%Y%m%dT%H%M%S%f}.txt"
    seal_to_file(engine=engine, path=path, actor=actor)
    if named is None:
        for old in sorted(folder.glob("seal-*.txt"))[:-SEALS_KEPT]:
            with suppress(OSError):
                old.unlink()
    return path


def seal_to_file(*, engine: Engine, path: Path, actor: Actor) -> AuditSeal:
    """Seal into this file, which is there whole or not at all. Raises OSError."""
    growing = path.with_name(f".{path.name}.part")
    try:
        with growing.open("wb") as file, transaction.atomic():
            made = _seal(engine, file, actor)
            file.flush()
            os.fsync(file.fileno())
            # Before the commit: a seal that the database knows of has its file.
            growing.rename(path)
    except BaseException:
        with suppress(OSError):
            growing.unlink()
        raise
    log.info("audit_sealed", number=made.number, entries=made.entries, file=str(path))
    return made


def _seal(engine: Engine, file: BinaryIO, actor: Actor) -> AuditSeal:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", ["audit-seal"])
    last = AuditSeal.objects.order_by("-number").first()
    counted, now = Heads(), engine.clock()
    file.write(FORMAT)
    for line in counted.lines(_heads()):
        file.write(line)
    seal = Seal(
        number=last.number + 1 if last else 1,
        at=now.isoformat(),
        environment=engine.environment,
        chains=counted.chains,
        entries=counted.entries,
        heads=counted.digest,
        previous=last.digest if last else FIRST,
    )
    key = signing_key()
    signed = SignedSeal(seal, key.sign(seal.signed()), key.public)
    file.write(signed.line() + b"\n")
    made = AuditSeal.objects.create(
        number=seal.number,
        sealed_at=now,
        environment=seal.environment,
        chains=seal.chains,
        entries=seal.entries,
        heads_digest=seal.heads,
        previous_digest=seal.previous,
        digest=seal.digest(),
        signature=signed.signature,
        public_key=signed.key,
    )
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action="audit_sealed",
        now=now,
        after={"seal": seal.number, "digest": made.digest, "entries": seal.entries},
    )
    return made


def _heads() -> Iterator[Head]:
    """The last entry of each chain, all as of one moment, in the order of the chains."""
    rows = (
        AuditEntry.objects.order_by("chain", "-number")
        .distinct("chain")
        .values_list("chain", "number", "entry_hash")
    )
    for chain, number, entry_hash in rows.iterator(chunk_size=_AT_ONCE):
        yield Head(chain, number, entry_hash)
