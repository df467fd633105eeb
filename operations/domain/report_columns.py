"""Which column of a provider's refund export says what.

Sources of the names: Stripe's dashboard exports ("Created date (UTC)", "color (metadata)"), its API
fields and its reports ("refund_metadata[color]"). Letter case, spaces and signs do not matter.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from operations.domain.identity import METADATA_ENVIRONMENT, METADATA_OPERATION

MOST_COLUMNS = 300
_LONGEST_NAME = 200


class Column(StrEnum):
    """What a column can say of a refund."""

    REFUND = "refund"
    CHARGE = "charge"
    PAYMENT_INTENT = "payment_intent"
    AMOUNT = "amount"
    CURRENCY = "currency"
    STATUS = "status"
    CREATED = "created"
    FAILURE_REASON = "failure_reason"


#: The names by which a column is known, the surest first.
NAMES: Mapping[Column, tuple[str, ...]] = {
    Column.REFUND: ("refund_id", "refund", "id"),
    Column.CHARGE: ("charge_id", "charge"),
    Column.PAYMENT_INTENT: ("payment_intent_id", "paymentintent_id", "payment_intent"),
    Column.AMOUNT: ("amount",),
    Column.CURRENCY: ("currency",),
    Column.STATUS: ("status",),
    Column.CREATED: ("created_utc", "created_date_utc", "created"),
    Column.FAILURE_REASON: ("failure_reason",),
}
_NEEDED = (Column.REFUND, Column.AMOUNT, Column.CURRENCY, Column.STATUS)
_METADATA = re.compile(r"(?:refund_)?metadata\[(?P<inside>.+)\]|(?P<before>.+) \(metadata\)")
_OURS = (METADATA_OPERATION, METADATA_ENVIRONMENT)


class HeaderRefused(ValueError):
    """The first line does not name what an import needs. `str` says what to do."""


class AmountUnit(StrEnum):
    """How the file writes amounts."""

    MAJOR = "major"
    MINOR = "minor"


class MappingRefused(ValueError):
    """The mapping itself is wrong. `str` says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping:
    """What the file says in other words: a column's name by what it says, and its amounts."""

    columns: Mapping[Column, str] = field(default_factory=dict)
    amounts: AmountUnit = AmountUnit.MAJOR

    def as_json(self) -> dict[str, str]:
        """As it is stored and as a mapping file writes it."""
        return {**{str(name): text for name, text in self.columns.items()}, "amounts": self.amounts}


def read_mapping(given: object) -> ColumnMapping:
    """A mapping from a JSON object such as {"refund": "Refund No", "amounts": "minor"}.

    Raises MappingRefused.
    """
    if not isinstance(given, Mapping):
        raise MappingRefused('A mapping is a JSON object such as {"refund": "Refund No"}.')
    columns: dict[Column, str] = {}
    amounts = AmountUnit.MAJOR
    for name, text in given.items():
        if not isinstance(text, str) or len(text) > _LONGEST_NAME:
            raise MappingRefused(f"In the mapping, \u201c{name}\u201d must name a column.")
        if name == "amounts":
            if text not in set(AmountUnit):
                raise MappingRefused('In the mapping, "amounts" must be "major" or "minor".')
            amounts = AmountUnit(text)
        elif name not in set(Column):
            known = ", ".join([*Column, "amounts"])
            raise MappingRefused(f"The mapping knows {known}; not \u201c{str(name)[:60]}\u201d.")
        elif text.strip():
            columns[Column(name)] = text
    return ColumnMapping(columns=columns, amounts=amounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where each thing stands in a row, counted from 0. `metadata` maps a key to its place."""

    width: int
    places: Mapping[Column, int]
    metadata: Mapping[str, int]
    amounts: AmountUnit


def read_header(cells: Sequence[str], mapping: ColumnMapping) -> Layout:
    """Where things stand. Raises HeaderRefused with a sentence that says what is wrong."""
    if len(cells) > MOST_COLUMNS:
        raise HeaderRefused(f"The file has {len(cells)} columns; {MOST_COLUMNS} are the most.")
    if any(len(cell) > _LONGEST_NAME for cell in cells):
        raise HeaderRefused("The first line is not a list of column names.")
    by_name: dict[str, list[int]] = {}
    for place, cell in enumerate(cells):
        by_name.setdefault(_plain(cell), []).append(place)
    found = {column: _place(column, by_name, mapping) for column in Column}
    places = {column: place for column, place in found.items() if place is not None}
    _refuse_other_exports(by_name, places, mapping)
    return Layout(
        width=len(cells),
        places=places,
        metadata=_metadata(cells),
        amounts=mapping.amounts,
    )


def _place(
    column: Column, by_name: Mapping[str, Sequence[int]], mapping: ColumnMapping
) -> int | None:
    named = mapping.columns.get(column)
    names = NAMES[column] if named is None else (_plain(named),)
    for name in names:
        found = by_name.get(name, [])
        if len(found) > 1:
            raise HeaderRefused(f"Two columns are named \u201c{name}\u201d.")
        if found:
            return found[0]
    if named is not None:
        raise HeaderRefused(f"No column is named \u201c{named}\u201d, which the mapping names.")
    return None


def _refuse_other_exports(
    by_name: Mapping[str, Sequence[int]], places: Mapping[Column, int], mapping: ColumnMapping
) -> None:
    missing = [name for name in _NEEDED if name not in places]
    if Column.CHARGE not in places and Column.PAYMENT_INTENT not in places:
        if "amount_refunded" in by_name and not mapping.columns:
            raise HeaderRefused(
                "This looks like an export of payments. Export the refunds: one line a refund, with"
                " its own id and the charge's."
            )
        missing.append(Column.CHARGE)
    if missing:
        wanted = "; ".join(f"{name} (known as {', '.join(NAMES[name])})" for name in missing)
        raise HeaderRefused(
            f"The first line names no column for: {wanted}. If the file has other names, map them."
        )


def _metadata(cells: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, cell in enumerate(cells):
        text = cell.strip()
        match = _METADATA.fullmatch(text)
        key = (match["inside"] or match["before"]) if match else text
        if match is None and text not in _OURS:
            continue
        if key in found:
            raise HeaderRefused(f"Two columns hold the metadata \u201c{key[:60]}\u201d.")
        found[key] = place
    return found


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")
