"""Seals: what all chains of the audit trail were at one time, signed, to be kept elsewhere.

A file is text: a first line that names the format, one line `chain number hash` for the last entry
of each chain, and a last line of JSON with the seal and its signature. Without the last line, or
with another number of lines than it says, it is no seal.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from operations.domain.audit import canonical

FORMAT = b"reconcile-seal 1\n"
#: What the first seal is tied to.
FIRST = "0" * 64
_HEAD = re.compile(rb"(\S{1,64}) ([1-9][0-9]{0,17}) ([0-9a-f]{64})\n")


class NoSeal(Exception):
    """The file is not a seal as it was written; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry of a chain."""

    chain: str
    number: int
    entry_hash: str

    def line(self) -> bytes:
        return f"{self.chain} {self.number} {self.entry_hash}\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """What is signed. `at` is ISO 8601 in UTC; `heads` the SHA-256 over the lines of the heads."""

    number: int
    at: str
    environment: str
    chains: int
    entries: int
    heads: str
    previous: str

    def signed(self) -> bytes:
        return canonical(asdict(self))

    def digest(self) -> str:
        """SHA-256 (hex), which the next seal names."""
        return hashlib.sha256(self.signed()).hexdigest()


@dataclass(frozen=True, slots=True)
class SignedSeal:
    """A seal, the signature of it and the public key to check it with, in hex."""

    seal: Seal
    signature: str
    key: str

    def line(self) -> bytes:
        return canonical({**asdict(self.seal), "signature": self.signature, "key": self.key})


class Heads:
    """Counts and hashes heads as they pass."""

    def __init__(self) -> None:
        self.chains = self.entries = 0
        self._digest = hashlib.sha256()

    def lines(self, heads: Iterable[Head]) -> Iterator[bytes]:
        for head in heads:
            line = head.line()
            self.chains += 1
            self.entries += head.number
            self._digest.update(line)
            yield line

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


def read_heads(lines: Iterable[bytes]) -> Iterator[Head]:
    """The heads of a file whose seal was read before, in the order of the file."""
    for line in lines:
        match = _HEAD.fullmatch(line)
        if match is not None:
            chain, number, entry_hash = match.groups()
            yield Head(chain.decode(), int(number), entry_hash.decode())


def read_seal(lines: Iterable[bytes]) -> SignedSeal:
    """Read a whole file and see that its lines are those of its seal.

    Raises NoSeal. Whether the signature is right is for the caller to see.
    """
    given = iter(lines)
    if next(given, b"") != FORMAT:
        raise NoSeal("This is no seal of an audit trail.")
    counted, last = Heads(), b""

    def heads() -> Iterator[Head]:
        nonlocal last
        for line in given:
            if last:
                raise NoSeal("Something follows the seal's last line.")
            if line.startswith(b"{"):
                last = line
                continue
            yield _head(line)

    for _ in counted.lines(heads()):
        pass
    signed = _signed(last)
    seal = signed.seal
    if (seal.chains, seal.entries, seal.heads) != (
        counted.chains,
        counted.entries,
        counted.digest,
    ):
        raise NoSeal("The lines of this seal are not those that were signed.")
    return signed


def _head(line: bytes) -> Head:
    match = _HEAD.fullmatch(line)
    if match is None:
        raise NoSeal("A line of this seal can't be read.")
    chain, number, entry_hash = match.groups()
    return Head(chain.decode(errors="replace"), int(number), entry_hash.decode())


def _signed(line: bytes) -> SignedSeal:
    try:
        fields: dict[str, Any] = json.loads(line)
        signature, key = str(fields.pop("signature")), str(fields.pop("key"))
        return SignedSeal(Seal(**fields), signature, key)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise NoSeal("The seal's last line is missing or can't be read.") from None
