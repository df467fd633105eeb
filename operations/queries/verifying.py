"""Verifying: the whole audit trail and its seals, read once, in order, and never kept."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from operations.domain.audit_walk import Walked, walk
from operations.domain.seals import FIRST, Head, SignedSeal, read_heads, read_seal
from operations.models import AuditEntry, AuditSeal
from operations.models.audit import stored
from operations.signatures import is_signed

_AT_ONCE = 2_000


class SealBroken(Exception):
    """A seal is not to be believed; the text is a sentence."""


def verify_chains(sealed: Iterable[Head] = ()) -> Walked:
    """Walk every chain; `sealed` as in `walk`."""
    rows = AuditEntry.objects.order_by("chain", "number").iterator(chunk_size=_AT_ONCE)
    return walk((stored(row) for row in rows), sealed)


def verify_seals() -> int:
    """See that the seals in the database follow each other, each signed; how many there are.

    Raises SealBroken.
    """
    number, previous = 0, FIRST
    for row in AuditSeal.objects.order_by("number").iterator(chunk_size=_AT_ONCE):
        signed = row.signed()
        seal = signed.seal
        if seal.number != number + 1 or seal.previous != previous:
            raise SealBroken(f"Seal {number + 1} is missing or does not follow the one before.")
        if seal.digest() != row.digest or not _is_signed(signed):
            raise SealBroken(f"Seal {seal.number} is not what was signed.")
        number, previous = seal.number, row.digest
    return number


def believed(file: BinaryIO, *, public: str) -> SignedSeal:
    """The seal in a file, if it was signed with this key (hex) and the database has it, too.

    Raises SealBroken, NoSeal.
    """
    signed = read_seal(file)
    seal = signed.seal
    if not _is_signed(signed):
        raise SealBroken("The signature of this seal is wrong.")
    if signed.key != public:
        raise SealBroken(
            f"This seal was signed with another key, {signed.key}. If that is an older key of"
            " yours, name it with --public-key."
        )
    row = AuditSeal.objects.filter(number=seal.number).first()
    if row is None or row.digest != seal.digest():
        raise SealBroken(
            f"The database has no seal {seal.number} like this one: seals were removed from it,"
            " or the seal is another installation's."
        )
    return signed


def heads_of(file: BinaryIO) -> Iterator[Head]:
    """The heads in a seal's file, once more from its beginning."""
    file.seek(0)
    return read_heads(file)


def _is_signed(signed: SignedSeal) -> bool:
    return is_signed(signed.seal.signed(), signature=signed.signature, public=signed.key)
