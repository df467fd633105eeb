"""One line of a refund export, read into the facts of a refund or a reason why it can't be."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from operations.domain.answers import RefundFacts
from operations.domain.money import CURRENCIES, MAX_AMOUNT, minor_units
from operations.domain.refund_state import known_status
from operations.domain.report_columns import AmountUnit, Column, Layout

_LONGEST_FIELD = 500
_LONGEST_METADATA_KEY = 40
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:\-]{0,254}")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?))?"
    r"(?:Z| ?UTC|([+-][0-9]{2}:?[0-9]{2}))?"
)
_SPELLED = {"cancelled": "canceled"}


class BadRow(ValueError):
    """This line can't be read; the others can. `str` says why."""


def read_row(cells: Sequence[str], layout: Layout) -> RefundFacts:
    """The refund that a line tells of. Raises BadRow with the reason."""
    if len(cells) != layout.width:
        raise BadRow(f"The line has {len(cells)} fields, the first line {layout.width}.")
    currency = _text(cells, layout, Column.CURRENCY).lower()
    if currency not in CURRENCIES:
        raise BadRow(f"\u201c{currency[:20]}\u201d is no currency that is known.")
    charge, intent = _id(cells, layout, Column.CHARGE), _id(cells, layout, Column.PAYMENT_INTENT)
    if not charge and not intent:
        raise BadRow("The line names no charge and no payment.")
    refund_id = _id(cells, layout, Column.REFUND)
    if not refund_id:
        raise BadRow("The line has no refund id.")
    return RefundFacts(
        id=refund_id,
        status=_status(_text(cells, layout, Column.STATUS)),
        amount=_amount(_text(cells, layout, Column.AMOUNT), currency, layout.amounts),
        currency=currency,
        charge=charge,
        payment_intent=intent,
        created=_seconds(_text(cells, layout, Column.CREATED)),
        metadata=_metadata(cells, layout),
        failure_reason=_text(cells, layout, Column.FAILURE_REASON),
    )


def _text(cells: Sequence[str], layout: Layout, column: Column) -> str:
    place = layout.places.get(column)
    if place is None:
        return ""
    text = cells[place].strip()
    _refuse_odd(text, column)
    return text


def _refuse_odd(text: str, name: str) -> None:
    if len(text) > _LONGEST_FIELD:
        raise BadRow(f"The {name} is longer than {_LONGEST_FIELD} characters.")
    if not text.isprintable() and not _is_storable(text):
        raise BadRow(f"The {name} holds bytes that are not text.")


def _is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold it: no NUL, and no half characters (bytes that are not UTF-8)."""
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _id(cells: Sequence[str], layout: Layout, column: Column) -> str:
    text = _text(cells, layout, column)
    if text and not _ID.fullmatch(text):
        raise BadRow(f"\u201c{text[:40]}\u201d is no id of a {column}.")
    return text


def _status(text: str) -> str:
    status = text.lower().replace(" ", "_")
    status = _SPELLED.get(status, status)
    if known_status(status) is None:
        raise BadRow(f"The status \u201c{text[:40]}\u201d is none that a refund has.")
    return status


def _amount(text: str, currency: str, unit: AmountUnit) -> int:
    if unit is AmountUnit.MAJOR:
        try:
            return minor_units(text, currency)
        except ValueError as error:
            raise BadRow(str(error)) from None
    if not re.fullmatch(r"[0-9]{1,15}", text) or not 0 < int(text) <= MAX_AMOUNT:
        raise BadRow(f"The amount \u201c{text[:40]}\u201d is not a whole number above zero.")
    return int(text)


def _seconds(text: str) -> int:
    """UTC seconds; 0 when the file says nothing. A time without a zone is UTC."""
    if not text:
        return 0
    if re.fullmatch(r"[0-9]{9,10}", text):
        return int(text)
    written = _MOMENT.fullmatch(text)
    try:
        if written is None:
            raise ValueError
        moment = datetime.fromisoformat(
            f"{written[1]}T{written[2] or '00:00'}{written[3] or '+00:00'}"
        )
        return max(0, int(moment.astimezone(UTC).timestamp()))
    except (ValueError, OverflowError):
        raise BadRow(
            f"The time \u201c{text[:40]}\u201d is not written as 2026-05-31 17:45:00."
        ) from None


def _metadata(cells: Sequence[str], layout: Layout) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, place in layout.metadata.items():
        text = cells[place]
        if not text:
            continue
        _refuse_odd(text, "metadata")
        if len(key) <= _LONGEST_METADATA_KEY:
            found[key] = text
    return found
