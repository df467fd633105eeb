"""Amounts as people type them: what is taken, and what is refused with a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.domain.money import CURRENCIES, MAX_AMOUNT, Money, amount_problem
from operations.domain.sentences import Sentence
from operations.domain.typed_amounts import typed_amount


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [
        ("38", "usd", 3_800),
        ("38.5", "usd", 3_850),
        (" 1234.50 ", "usd", 123_450),
        ("1,234.50", "usd", 123_450),
        ("12.3400", "usd", 1_234),
        ("5000", "jpy", 5_000),
        ("5.120", "kwd", 5_120),
        ("5.12", "kwd", 5_120),
        ("1500", "isk", 150_000),
        ("1500.00", "isk", 150_000),
        ("0.01", "eur", 1),
    ],
)
def test_an_amount_is_read_in_the_unit_of_its_currency(
    text: str, currency: str, amount: int
) -> None:
    assert typed_amount(text, currency) == amount


@pytest.mark.parametrize(
    ("text", "currency", "said"),
    [
        ("", "usd", "Type the amount, as 1234.50."),
        ("   ", "jpy", "Type the amount, as 1234."),
        ("12.345", "usd", "USD has 2 decimals: type the amount as 1234.50."),
        ("5.5", "jpy", "JPY has no decimals: type the amount as 1234."),
        ("15.50", "isk", "ISK has no decimals: type the amount as 1234."),
        ("5.123", "kwd", "In KWD the last of the three decimals is 0: type it as 1234.560."),
        ("-5", "usd", "Type the amount without a sign, as 1234.50."),
        ("\N{MINUS SIGN}5", "usd", "Type the amount without a sign, as 1234.50."),
        ("0.00", "usd", "The amount must be more than zero: type it as 1234.50."),
        ("1e3", "usd", "Type all digits of the amount, as 1234.50."),
        ("1.5E+2", "usd", "Type all digits of the amount, as 1234.50."),
        ("٣٨", "usd", "Use the digits 0 to 9: type the amount as 1234.50."),
        ("１２", "usd", "Use the digits 0 to 9: type the amount as 1234.50."),  # noqa: RUF001
        ("12\x00", "usd", "Type the number alone, as 1234.50."),
        ("$12", "usd", "Type the number alone, as 1234.50."),
        ("12 USD", "usd", "Type the number alone, as 1234.50."),
        ("0x10", "usd", "Type the number alone, as 1234.50."),
        (
            "1.234.567",
            "usd",
            "There is more than one point. Type the amount as 1234.50, with at most one.",
        ),
        ("9" * 21, "usd", "This is too long for an amount: type it as 1234.50."),
        ("9999999999999", "usd", "The amount can't be more than 9999999999.99 USD."),
        *[
            (
                text,
                "usd",
                "The comma could mean two things. Type the amount as 1234.50, without commas.",
            )
            for text in ("1.234,50", "1,234", "12,5", "1,2,3.50")
        ],
    ],
)
def test_what_could_be_meant_otherwise_is_refused_with_what_to_type(
    text: str, currency: str, said: str
) -> None:
    assert str(typed_amount(text, currency)) == said


@given(amount=st.integers(1, MAX_AMOUNT), currency=st.sampled_from(sorted(CURRENCIES)))
def test_an_amount_written_out_is_read_back(amount: int, currency: str) -> None:
    found = typed_amount(str(Money(amount, currency).major()), currency)

    assert found == amount or amount_problem(amount, currency)


#: What stands in amounts, and what people and programs leave in them.
_TYPED = "0123456789.,-+'_ eExX$€¥%\u0663\uff11\u00a0\x00"


@given(text=st.text(_TYPED, max_size=30), currency=st.sampled_from(["usd", "jpy", "kwd", "isk"]))
def test_anything_typed_is_an_amount_or_a_sentence(text: str, currency: str) -> None:
    found = typed_amount(text, currency)

    assert isinstance(found, Sentence) or amount_problem(found, currency) is None
