"""The flags of an operation as its page shows them: both facts side by side."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from operations.domain.money import Money
from operations.models import Flag
from operations.queries.dossier import Dossier
from operations.queries.evidence import anchor_of
from operations.templatetags.showing import money


@dataclass(frozen=True)
class SideRow:
    """One line: what we hold and what the provider says, as text."""

    aspect: str
    ours: str
    theirs: str

    @property
    def differs(self) -> bool:
        """Whether both are known and not the same."""
        return bool(self.ours and self.theirs) and self.ours != self.theirs


@dataclass(frozen=True, kw_only=True)
class FactView:
    """One fact that raised a flag, and where it comes from."""

    raised_at: datetime
    source: str
    anchor: str
    rows: tuple[SideRow, ...]


@dataclass(frozen=True, kw_only=True)
class FlagView:
    """A flag that stands, with every fact that raised it."""

    name: str
    facts: tuple[FactView, ...]


@dataclass(frozen=True, kw_only=True)
class FlagsShown:
    """What stands, and what people cleared, newest first."""

    standing: tuple[FlagView, ...]
    cleared: tuple[Flag, ...]


def flags_of(dossier: Dossier) -> FlagsShown:
    """The flags of an operation."""
    currency = dossier.operation.currency
    open_facts = [row for row in dossier.flags if row.cleared_at is None]
    return FlagsShown(
        standing=tuple(
            FlagView(
                name=name,
                facts=tuple(
                    _fact(row, currency, _anchor(dossier, row))
                    for row in open_facts
                    if row.attention == name
                ),
            )
            for name in dossier.operation.attention
        ),
        cleared=tuple(row for row in reversed(dossier.flags) if row.cleared_at is not None),
    )


def _fact(row: Flag, currency: str, anchor: str) -> FactView:
    evidence = row.evidence
    return FactView(
        raised_at=row.raised_at,
        source=evidence.source,
        anchor=anchor,
        rows=tuple(_in_money(row, currency, evidence.currency or currency)),
    )


def _anchor(dossier: Dossier, row: Flag) -> str:
    return anchor_of(row.evidence, attempts=dossier.attempts, lookups=dossier.lookups)


def _in_money(row: Flag, ours: str, theirs: str) -> Iterator[SideRow]:
    for side in row.pairs:
        if side.aspect == "amount":
            yield SideRow(side.aspect, *_amounts((side.ours, ours), (side.theirs, theirs)))
        else:
            yield SideRow(side.aspect, side.ours, side.theirs)


def _amounts(*sides: tuple[str, str]) -> Iterable[str]:
    for amount, currency in sides:
        yield money(Money(int(amount), currency)) if amount.isdigit() else amount
