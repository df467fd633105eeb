"""Walking all chains against a seal finds what was changed, cut off, removed or put in."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from operations.domain.audit import CHAIN_START, Actor, ActorKind, ChainedEntry
from operations.domain.audit_walk import Stored, walk
from operations.domain.seals import (
    FORMAT,
    Head,
    Heads,
    NoSeal,
    Seal,
    SignedSeal,
    read_heads,
    read_seal,
)
from operations.signatures import SigningKey, is_signed

KEY = SigningKey(bytes(range(32)))
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def chain(name: str, length: int, *, reason: str = "Because") -> list[Stored]:
    rows: list[Stored] = []
    for number in range(1, length + 1):
        entry = ChainedEntry(
            chain=name,
            number=number,
            at=NOW,
            actor=Actor(kind=ActorKind.PERSON, id="1", name="Alice"),
            action="noted",
            before={},
            after={},
            reason=reason,
            evidence_id="",
            previous_hash=rows[-1].entry_hash if rows else CHAIN_START,
        )
        rows.append(Stored(name, name, number, entry.previous_hash, entry.digest(), "noted", entry))
    return rows


def heads(*chains: list[Stored]) -> list[Head]:
    return [Head(rows[-1].chain, rows[-1].number, rows[-1].entry_hash) for rows in chains]


A, B, C = chain("a", 4), chain("b", 3), chain("c", 1)
SEALED = heads(A, B, C)


def test_everything_that_was_sealed_is_there_and_more_may_be() -> None:
    longer, new = chain("b", 6), chain("bb", 2)
    walked = walk([*A, *longer, *new, *C], SEALED)
    assert (walked.broken, walked.entries, walked.chains) == (None, 13, 4)


@pytest.mark.parametrize(
    ("entries", "at"),
    [
        ([*A, *B[:2], *C], ("b", 3)),  # a tail that was cut
        ([*A, *C], ("b", 1)),  # a chain that was removed
        ([*B, *C], ("a", 1)),  # the first one
        ([*A, *B], ("c", 1)),  # the last one
        ([], ("a", 1)),  # all
        ([*A[:1], *A[2:], *B, *C], ("a", 2)),  # one that was taken out
        ([*A, *B[1:], *C], ("b", 1)),  # the first of a chain
        ([A[0], A[2], A[1], A[3], *B, *C], ("a", 2)),  # two that were swapped
        ([*A, *chain("b", 3, reason="Another"), *C], ("b", 3)),  # a chain written anew
        ([*A, B[0], B[0], *B[1:], *C], ("b", 2)),  # one that was put in
    ],
)
def test_the_first_broken_entry_is_named(entries: list[Stored], at: tuple[str, int]) -> None:
    broken = walk(entries, SEALED).broken
    assert broken is not None
    assert (broken.chain, broken.number) == at


def a_file() -> list[bytes]:
    counted = Heads()
    lines = list(counted.lines(SEALED))
    seal = Seal(
        number=1,
        at=NOW.isoformat(),
        environment="test",
        chains=counted.chains,
        entries=counted.entries,
        heads=counted.digest,
        previous="0" * 64,
    )
    signed = SignedSeal(seal, KEY.sign(seal.signed()), KEY.public)
    return [FORMAT, *lines, signed.line() + b"\n"]


def test_a_file_is_read_as_it_was_written() -> None:
    lines = a_file()
    signed = read_seal(lines)
    assert (signed.seal.chains, signed.seal.entries, signed.key) == (3, 8, KEY.public)
    assert list(read_heads(lines)) == SEALED


def _without(place: int) -> Callable[[list[bytes]], Iterator[bytes]]:
    return lambda lines: (line for at, line in enumerate(lines) if at != place % len(lines))


@pytest.mark.parametrize(
    "change",
    [
        *(_without(place) for place in range(5)),
        lambda lines: [*lines, b"b 9 " + b"0" * 64 + b"\n"],
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [line.replace(b'"entries":8', b'"entries":7') for line in lines],
        lambda lines: [line.replace(b"a 4 ", b"a 3 ") for line in lines],
        lambda lines: [lines[0], b"\xff" * 200, *lines[1:]],
        lambda lines: [*lines[:-1], b"{}\n"],
        lambda lines: [],
    ],
)
def test_a_file_that_was_changed_is_no_seal(
    change: Callable[[list[bytes]], Iterator[bytes]],
) -> None:
    with pytest.raises(NoSeal):
        read_seal(change(a_file()))


def test_a_signature_is_one_key_s_and_one_message_s() -> None:
    signature = KEY.sign(b"message")
    assert is_signed(b"message", signature=signature, public=KEY.public)
    assert not is_signed(b"massage", signature=signature, public=KEY.public)
    other = SigningKey(bytes(32)).public
    assert not is_signed(b"message", signature=signature, public=other)
    assert not is_signed(b"message", signature="", public="no key")
