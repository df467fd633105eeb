"""Audit bundles: all that is recorded of one operation, in a signed ZIP that checks by itself.

    python -m operations.bundles FILE [--public-key HEX]

needs neither a database nor settings: it reads the file, the signature over `manifest.json`, the
digest of every other file, and the hash chain in `audit.json`.
"""

import argparse
import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from operations.domain.audit import Actor, ActorKind, ChainedEntry, canonical
from operations.domain.audit_walk import Stored, walk
from operations.signatures import SigningKey, is_signed

FORMAT = "reconcile-bundle 1"
MANIFEST, SIGNATURE, AUDIT = "manifest.json", "manifest.sig", "audit.json"
#: ZIP has no time before it. One time for all, so that the same content is the same file.
_MADE = (1980, 1, 1, 0, 0, 0)
#: The most that is read of a bundle that somebody sent us: unpacked, in bytes, and in files.
_MOST_BYTES = 256 * 2**20
_MOST_FILES = 10_000


class BundleBroken(Exception):
    """The file is no bundle as it was made; the text is a sentence."""


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What a whole bundle holds. `masked` entries hide a secret, so their own hash can't be tried;
    the signature covers them all the same.
    """

    operation: str
    made_at: str
    environment: str
    files: int
    entries: int
    masked: int
    key: str


def pack(files: Mapping[str, bytes], *, about: Mapping[str, str], key: SigningKey) -> bytes:
    """A ZIP of these files with a manifest of their SHA-256 and its signature.

    `about` has `operation`, `made_at` and `environment`.
    """
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    manifest = canonical({"format": FORMAT, **about, "files": digests, "key": key.public})
    every = {
        MANIFEST: manifest,
        SIGNATURE: key.sign(manifest).encode(),
        **dict(sorted(files.items())),
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in every.items():
            entry = zipfile.ZipInfo(name, _MADE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return packed.getvalue()


def verify(packed: bytes, *, public: str = "") -> Verified:
    """Check a bundle; with `public` (hex) also that this key signed it. Raises BundleBroken."""
    files = _unpacked(packed)
    manifest = files.pop(MANIFEST, b"")
    signature = files.pop(SIGNATURE, b"").decode(errors="replace")
    try:
        said = json.loads(manifest)
        key, digests = str(said["key"]), dict(said["files"])
        about = {name: str(said[name]) for name in ("operation", "made_at", "environment")}
    except (ValueError, KeyError, TypeError):
        raise BundleBroken("The manifest is missing or can't be read.") from None
    if said.get("format") != FORMAT:
        raise BundleBroken("This bundle has a format that is not known here.")
    if not is_signed(manifest, signature=signature, public=key):
        raise BundleBroken("The signature of the manifest is wrong.")
    if public and public != key:
        raise BundleBroken(f"The bundle was signed with another key: {key}.")
    for name in sorted(digests.keys() | files.keys()):
        if name not in files:
            raise BundleBroken(f"{name} is missing.")
        if digests.get(name) != hashlib.sha256(files[name]).hexdigest():
            raise BundleBroken(f"{name} is not what was signed.")
    entries, masked = _walk_chain(files.get(AUDIT, b""), about["operation"])
    return Verified(**about, files=len(files), entries=entries, masked=masked, key=key)


def _unpacked(packed: bytes) -> dict[str, bytes]:
    """Nothing is written to disk, so no name in the file can lead anywhere."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            infos = archive.infolist()
            if len(infos) > _MOST_FILES or sum(info.file_size for info in infos) > _MOST_BYTES:
                raise BundleBroken("The file is larger than any bundle.")
            files = {info.filename: archive.read(info) for info in infos}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise BundleBroken(f"The file can't be unpacked: {error}") from None
    if len(files) != len(infos):
        raise BundleBroken("The file holds a name twice.")
    return files


def _walk_chain(content: bytes, operation: str) -> tuple[int, int]:
    try:
        rows = list(_stored(json.loads(content), operation))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BundleBroken("The audit trail can't be read.") from None
    walked = walk(row for row, _ in rows)
    if walked.broken is not None:
        broken = walked.broken
        raise BundleBroken(f"The audit trail is broken at entry {broken.number}: {broken.why}.")
    return len(rows), sum(is_masked for _, is_masked in rows)


def _stored(entries: Any, operation: str) -> Iterator[tuple[Stored, bool]]:
    for row in entries:
        entry = ChainedEntry(
            chain=row["chain"],
            number=row["number"],
            at=datetime.fromisoformat(row["at"]),
            actor=Actor(**{**row["actor"], "kind": ActorKind(row["actor"]["kind"])}),
            action=row["action"],
            before=row["before"],
            after=row["after"],
            reason=row["reason"],
            evidence_id=row["evidence"],
            previous_hash=row["previous_hash"],
        )
        is_masked = bool(row["masked"])
        stored = Stored(
            chain=row["chain"],
            belongs_to=operation,
            number=row["number"],
            previous_hash=row["previous_hash"],
            entry_hash=row["entry_hash"],
            label=row["action"],
            entry=entry,
            is_masked=is_masked,
        )
        yield stored, is_masked


def main(arguments: list[str] | None = None) -> int:
    """0: whole; 1: broken; 2: called wrongly."""
    parser = argparse.ArgumentParser(
        prog="python -m operations.bundles", description="Check an audit bundle."
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--public-key", default="", help="the key that must have signed it (hex)")
    given = parser.parse_args(arguments)
    try:
        text = told(given.file.read_bytes(), public=given.public_key)
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except BundleBroken as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{text}\n")
    return 0


def told(packed: bytes, *, public: str) -> str:
    """What a check found, for people. Raises BundleBroken."""
    found = verify(packed, public=public)
    lines = [
        f"Operation {found.operation}, as of {found.made_at} ({found.environment}).",
        f"{found.files} files as they were signed; {found.entries} audit entries in one chain.",
    ]
    if found.masked:
        lines.append(f"{found.masked} entries hide a secret: their own hash can't be tried.")
    lines.append(
        f"Signed with {found.key}."
        if public
        else f"Signed with {found.key}. Compare it with the key that you know: --public-key."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
