"""A refund export is read exactly, or the line that can't be is named with its reason."""

import io

import pytest

from operations.domain.answers import RefundFacts
from operations.domain.money import minor_units
from operations.domain.report_columns import (
    ColumnMapping,
    HeaderRefused,
    MappingRefused,
    read_mapping,
)
from operations.domain.report_lines import FileRefused, ReportLine, ReportReader

HEADER = "id,Amount,Charge ID,Created (UTC),Currency,Status\n"
GOOD = "re_1,12.50,ch_1,2026-05-31 17:45:00,usd,Succeeded\n"


def read(text: str | bytes, mapping: ColumnMapping | None = None) -> list[ReportLine]:
    raw = text.encode() if isinstance(text, str) else text
    reader = ReportReader(io.BufferedReader(io.BytesIO(raw)), mapping or ColumnMapping())
    return list(reader.lines())


def refund(text: str | bytes, mapping: ColumnMapping | None = None) -> RefundFacts:
    (line,) = read(text, mapping)
    assert line.refund is not None, line.problem
    return line.refund


def problem(row: str) -> str:
    (line,) = read(HEADER + row)
    assert line.refund is None
    return line.problem


def test_a_line_of_the_dashboards_export_is_a_refund() -> None:
    found = refund(
        "id,Amount,Charge ID,PaymentIntent ID,Created (UTC),Currency,Status,"
        "reconcile_operation_id (metadata),refund_metadata[color]\n"
        'pyr_1,"1,012.50",ch_1,pi_1,2026-05-31 17:45,EUR,Canceled,0f,blue\n'
    )

    assert (found.id, found.charge, found.payment_intent) == ("pyr_1", "ch_1", "pi_1")
    assert (found.amount, found.currency, found.status) == (101_250, "eur", "canceled")
    assert found.created == 1_780_249_500
    assert found.metadata == {"reconcile_operation_id": "0f", "color": "blue"}


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [
        ("12.5", "usd", 1_250),
        ("0.07", "usd", 7),
        ("1,234,567.89", "usd", 123_456_789),
        ("19.990", "usd", 1_999),
        ("500", "jpy", 500),
        ("1,500", "jpy", 1_500),
        ("500.00", "jpy", 500),
        ("1.230", "kwd", 1_230),
        ("5", "isk", 500),
        ("9999999999.99", "usd", 999_999_999_999),
        # As a float this would be 1136 cents.
        ("11.37", "usd", 1_137),
    ],
)
def test_amounts_are_exact_in_the_unit_of_their_currency(
    text: str, currency: str, amount: int
) -> None:
    assert minor_units(text, currency) == amount


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        *[(text, "usd") for text in ("", "12,50", "1.250,00", "1,25", "1,000", "12.505")],
        *[(text, "usd") for text in ("1e3", "$5", "-5", "0", "0.00", "NaN", "1 000", "٣", "1_0")],
        ("0.5", "jpy"),
        ("1,500", "kwd"),
        ("99999999999.00", "usd"),
    ],
)
def test_amounts_that_could_mean_something_else_are_refused(text: str, currency: str) -> None:
    with pytest.raises(ValueError, match=r"[.]$"):
        minor_units(text, currency)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("re_1,12.50,ch_1,,usd,Succeeded,more\n", "has 7 fields, the first line 6"),
        ("re_1,12.50,ch_1,,usd\n", "has 5 fields"),
        ("re_1,12.50,ch_1,,zzz,Succeeded\n", "no currency"),
        ("re_1,12.50,ch_1,,usd,Paid\n", "status “Paid”"),
        ("re_1,12.50,,,usd,Succeeded\n", "no charge"),
        (",12.50,ch_1,,usd,Succeeded\n", "no refund id"),
        ("=HYPERLINK(0),12.50,ch_1,,usd,Succeeded\n", "no id of a refund"),
        ("re_1,12.50,ch_1,31/05/2026,usd,Succeeded\n", "not written as"),
        ("re_1,12.50,ch_1,2026-02-30,usd,Succeeded\n", "not written as"),
        ("re_1,1.2E+3,ch_1,,usd,Succeeded\n", "not a number"),
        (f"re_1,12.50,{'c' * 600},,usd,Succeeded\n", "longer than 500"),
        ("re_1,12.50,ch\x00_1,,usd,Succeeded\n", "not text"),
        ('re_1,"12.50"0,ch_1,,usd,Succeeded\n', "quotes do not fit"),
    ],
)
def test_a_bad_line_says_why(row: str, words: str) -> None:
    assert words in problem(row)


def test_good_lines_around_a_bad_one_are_kept_with_their_line_numbers() -> None:
    found = read(HEADER + GOOD + "\n" + "re_2,x,ch_1,,usd,pending\n" + GOOD.replace("re_1", "re_3"))

    assert [(line.line, bool(line.refund)) for line in found] == [(2, True), (4, False), (5, True)]


def test_a_quoted_line_end_belongs_to_its_field() -> None:
    header = HEADER.replace("Status", "Status,note (metadata)")
    found = read(
        header
        + GOOD.replace("\n", ',"two\r\nlines, ""quoted"""\n')
        + GOOD.replace("\n", ",plain\n")
    )

    assert [line.line for line in found] == [2, 4]
    assert found[0].refund is not None
    assert found[0].refund.metadata == {"note": 'two\r\nlines, "quoted"'}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("comma", [",", ";", "\t"])
def test_encodings_line_ends_and_delimiters_of_spreadsheets(
    encoding: str, ends: str, comma: str
) -> None:
    header = HEADER.replace("Status", "Status,note (metadata)")
    text = (header + GOOD.replace("\n", ",Zoë\n")).replace(",", comma).replace("\n", ends)

    assert refund(text.encode(encoding)).metadata == {"note": "Zoë"}


def test_bytes_that_are_no_text_spoil_only_their_line() -> None:
    good = GOOD.encode()
    found = read(HEADER.encode() + good.replace(b"ch_1", b"ch_\xff") + good)

    assert [line.problem for line in found] == ["The charge holds bytes that are not text.", ""]


def test_a_quote_that_is_never_closed_does_not_swallow_the_file() -> None:
    rows = "".join(GOOD.replace("re_1", f"re_{n}") for n in range(5_000))

    found = read(HEADER + GOOD.replace("re_1", '"re_1') + rows)

    assert found[0].problem.startswith("Lines 2 to ")
    assert "a quote is not closed" in found[0].problem
    assert sum(1 for line in found if line.refund) > 3_000


def test_one_line_without_end_is_one_bad_row() -> None:
    found = read(HEADER + "x" * 5_000_000 + "\n" + GOOD)

    assert [bool(line.refund) for line in found] == [False, True]


def test_a_report_can_be_read_on_from_a_line() -> None:
    rows = "".join(GOOD.replace("re_1", f"re_{n}") for n in range(10))
    reader = ReportReader(
        io.BufferedReader(io.BytesIO((HEADER + rows).encode())),
        ColumnMapping(),
    )

    assert [line.line for line in reader.lines(after=9)] == [10, 11]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("name,e-mail\n", "names no column for: refund"),
        ("id,Amount,Amount Refunded,Currency,Status\n", "export of payments"),
        ("id,Amount,Charge,Currency\n", "status (known as status)"),
        ("id,Amount,amount,Charge,Currency,Status\n", "Two columns are named “amount”"),
        (",".join(f"c{n}" for n in range(400)) + "\n", "has 400 columns; 300 are the most"),
        ('"id,Amount\n', "not a list of column names"),
        ("x" * 100_000, "not a list of column names"),
    ],
)
def test_a_wrong_first_line_says_what_is_wrong(header: str, words: str) -> None:
    with pytest.raises(HeaderRefused) as refused:
        read(header + GOOD)

    assert words in str(refused.value)


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"PK\x03\x04rest", b"a\x00b\x00"])
def test_what_is_no_csv_is_refused(raw: bytes) -> None:
    with pytest.raises(FileRefused):
        read(raw)


def test_other_columns_are_mapped_and_amounts_may_be_in_the_smallest_unit() -> None:
    mapping = read_mapping(
        {"refund": "Refund No.", "charge": "Payment", "amount": "Cents", "amounts": "minor"}
    )

    found = refund("Refund No.,Payment,Cents,Currency,Status\nre_9,ch_9,1999,usd,failed\n", mapping)

    assert (found.id, found.charge, found.amount) == ("re_9", "ch_9", 1_999)


@pytest.mark.parametrize(
    "given", [[], {"refnd": "x"}, {"refund": 5}, {"amounts": "cents"}, {"charge": "x" * 300}]
)
def test_a_wrong_mapping_is_refused(given: object) -> None:
    with pytest.raises(MappingRefused):
        read_mapping(given)


def test_a_mapping_to_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(HeaderRefused, match="Refund No"):
        read(HEADER + GOOD, read_mapping({"refund": "Refund No"}))
