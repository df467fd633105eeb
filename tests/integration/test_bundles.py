"""An operation's bundle is signed, says the same to people and programs, and checks by itself."""

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from operations import bundles
from operations.models import AuditEntry
from operations.services.actors import SEALER
from operations.services.bundling import bundle_of
from operations.services.engine import default_engine
from operations.services.sealing import signing_key

from .rows import Rows

pytestmark = pytest.mark.django_db
SECRET = "sk_live_CanaryCanary4711"
HOSTILE = '<script>alert("x")</script>'


@pytest.fixture
def operation() -> UUID:
    """One with a row of each kind, an old entry that holds a secret, and hostile text."""
    rows = Rows()
    operation = rows.operation()
    rows.attempt(operation)
    rows.evidence(operation, facts={"note": HOSTILE, "api_key": SECRET})
    rows.request(operation)
    rows.handling(rows.event(), operation_id=operation)
    rows.note(operation, text=f"{HOSTILE} {SECRET}")
    for reason in ("Because", f"{HOSTILE} {SECRET}"):
        AuditEntry.append(
            operation_id=operation,
            actor=SEALER,
            action="noted",
            now=default_engine().clock(),
            reason=reason,
        )
    return UUID(str(operation))


@pytest.fixture
def packed(operation: UUID) -> bytes:
    return bundle_of(engine=default_engine(), operation_id=operation, actor=SEALER).content


def files_of(packed: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed_again(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def test_a_bundle_holds_everything_and_checks(packed: bytes, operation: UUID) -> None:
    found = bundles.verify(packed, public=signing_key().public)
    files = files_of(packed)

    assert (found.operation, found.entries, found.masked) == (str(operation), 2, 0)
    recorded = json.loads(files["operation.json"])
    assert recorded["operation"]["id"] == str(operation)
    for kind in ("requests", "attempts", "evidence", "events", "notes"):
        assert len(recorded[kind]) == 1, kind
    assert [name for name in files if name.startswith("events/")]
    entry = AuditEntry.objects.get(action="bundle_made")
    assert (entry.operation_id, entry.after["operation"]) == (None, str(operation))


def test_no_secret_and_no_script_is_in_it(packed: bytes) -> None:
    files = files_of(packed)
    assert not [name for name, content in files.items() if SECRET.encode() in content]
    page = files["index.html"].decode()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_the_same_content_is_the_same_file(operation: UUID) -> None:
    from dataclasses import replace

    now = default_engine().clock()
    engine = replace(default_engine(), clock=lambda: now)
    first, second = (
        bundle_of(engine=engine, operation_id=operation, actor=SEALER).content for _ in range(2)
    )
    assert first == second


def _changed(name: str, change: Callable[[bytes], bytes]) -> Callable[[dict[str, bytes]], Any]:
    return lambda files: files.update({name: change(files[name])})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_changed("operation.json", lambda text: text + b" "), "operation.json is not what was"),
        (lambda files: files.pop("index.html"), "index.html is missing"),
        (lambda files: files.update({"more.txt": b""}), "more.txt is not what was signed"),
        (_changed("manifest.json", lambda text: text.replace(b"local", b"other")), "signature"),
        (_changed("manifest.sig", lambda text: b"0" * 128), "signature"),
        (lambda files: files.pop("manifest.json"), "manifest is missing"),
    ],
)
def test_a_bundle_that_was_changed_is_found(
    packed: bytes, change: Callable[[dict[str, bytes]], Any], said: str
) -> None:
    files = files_of(packed)
    change(files)
    with pytest.raises(bundles.BundleBroken, match=said):
        bundles.verify(packed_again(files))


def test_a_chain_that_does_not_hold_is_found_though_it_was_signed(packed: bytes) -> None:
    files = files_of(packed)
    about = json.loads(files.pop("manifest.json"))
    files.pop("manifest.sig")
    entries = json.loads(files["audit.json"])
    entries[1]["reason"] = "Another"
    files["audit.json"] = json.dumps(entries).encode()
    named = {name: about[name] for name in ("operation", "made_at", "environment")}
    with pytest.raises(bundles.BundleBroken, match="broken at entry 2"):
        bundles.verify(bundles.pack(files, about=named, key=signing_key()))


@pytest.mark.parametrize("junk", [b"", b"PK", b"\x00" * 100])
def test_what_is_no_bundle_is_said_to_be_none(junk: bytes) -> None:
    with pytest.raises(bundles.BundleBroken, match="can't be unpacked"):
        bundles.verify(junk)


def test_it_is_checked_without_settings_or_database(packed: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(packed)

    def check(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "operations.bundles", str(path), *arguments],
            env={"PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )

    done = check("--public-key", signing_key().public)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 audit entries in one chain" in done.stdout
    assert check("--public-key", "ab" * 32).returncode == 1


def test_the_commands_write_one_and_check_it(operation: UUID, tmp_path: Path) -> None:
    path, said = tmp_path / "bundle.zip", StringIO()
    call_command("audit_bundle", str(operation), "--out", str(path), stdout=said)
    call_command("verify_bundle", str(path), stdout=said)
    assert f"Public key {signing_key().public}" in said.getvalue()
    assert f"Operation {operation}, as of" in said.getvalue()
    for arguments in (
        ("audit_bundle", str(operation), "--out", str(path)),
        ("audit_bundle", str(UUID(int=5)), "--out", str(tmp_path / "other")),
        ("verify_bundle", str(tmp_path / "none")),
    ):
        with pytest.raises(CommandError) as error:
            call_command(*arguments)
        assert error.value.returncode == 2
    assert [found.name for found in tmp_path.iterdir()] == ["bundle.zip"]
