"""Walking all chains in order: each entry follows, and each chain is at least what was sealed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from operations.domain.audit import CHAIN_START, ChainedEntry
from operations.domain.seals import Head


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry as it stands in the table: where it belongs, and the hash that it is said to have.

    `entry` is None when its fields are such as no entry has. With `is_masked` a secret in them is
    hidden, so that the hash can't be tried.
    """

    chain: str
    belongs_to: str
    number: int
    previous_hash: str
    entry_hash: str
    label: str
    entry: ChainedEntry | None
    is_masked: bool = False

    @property
    def is_whole(self) -> bool:
        return (
            self.chain == self.belongs_to
            and self.entry is not None
            and (self.is_masked or self.entry.digest() == self.entry_hash)
        )


@dataclass(frozen=True, slots=True)
class Break:
    """The first entry that is not as it was written. `label` says what it was, if that is known."""

    chain: str
    number: int
    why: str
    label: str = ""


@dataclass(slots=True)
class Walked:
    """How much was walked, and the first break."""

    entries: int = 0
    chains: int = 0
    broken: Break | None = None


def walk(entries: Iterable[Stored], sealed: Iterable[Head] = ()) -> Walked:
    """Walk entries in the order of chain and number; `sealed` are heads in the same order.

    Nothing of them is kept. Entries that were added after the seal only have to follow.
    """
    walked = Walked()
    heads = iter(sealed)
    head = next(heads, None)
    for chain, rows in groupby(entries, key=lambda entry: entry.chain):
        if head is not None and head.chain < chain:
            break
        mine = head if head is not None and head.chain == chain else None
        walked.chains += 1
        walked.broken = _walk_chain(chain, rows, mine, walked)
        if walked.broken is not None:
            return walked
        if mine is not None:
            head = next(heads, None)
    if head is not None:
        walked.broken = Break(head.chain, 1, f"all {head.number} sealed entries are missing")
    return walked


def _walk_chain(
    chain: str, rows: Iterator[Stored], head: Head | None, walked: Walked
) -> Break | None:
    number, previous = 0, CHAIN_START
    for row in rows:
        walked.entries += 1
        if row.number != number + 1:
            return Break(chain, number + 1, f"entry {row.number} stands in its place", row.label)
        if row.previous_hash != previous:
            return Break(
                chain, row.number, "it does not follow from the entry before it", row.label
            )
        if not row.is_whole:
            return Break(chain, row.number, "it is not what was written", row.label)
        number, previous = row.number, row.entry_hash
        if head is not None and number == head.number and previous != head.entry_hash:
            return Break(chain, number, "it is not the one that was sealed", row.label)
    if head is not None and number < head.number:
        return Break(chain, number + 1, f"it is missing: {head.number} entries were sealed")
    return None
