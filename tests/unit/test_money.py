"""Amounts as Stripe counts them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.domain.money import (
    CURRENCIES,
    MAX_AMOUNT,
    THREE_DECIMAL,
    WHOLE_UNITS_ONLY,
    ZERO_DECIMAL,
    Money,
    amount_problem,
    decimals,
)


@pytest.mark.parametrize(
    ("currency", "amount", "major"),
    [
        ("usd", 3_800, "38.00"),
        ("eur", 1, "0.01"),
        ("jpy", 3_800, "3800"),
        ("krw", 1, "1"),
        ("vnd", 50_000, "50000"),
        ("xpf", 12, "12"),
        ("kwd", 3_800, "3.800"),
        ("tnd", 10, "0.010"),
        ("isk", 3_800, "38.00"),
        ("ugx", 100, "1.00"),
        ("huf", 3_850, "38.50"),
        ("twd", 3_850, "38.50"),
        ("mga", 5, "5"),
    ],
)
def test_an_amount_is_read_in_the_unit_of_its_currency(
    currency: str, amount: int, major: str
) -> None:
    assert str(Money(amount, currency).major()) == major


def test_the_lists_are_stripes() -> None:
    zero = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf"
    assert set(zero.split()) == ZERO_DECIMAL
    assert {"bhd", "jod", "kwd", "omr", "tnd"} == THREE_DECIMAL
    assert {"isk", "ugx"} == WHOLE_UNITS_ONLY
    assert not ZERO_DECIMAL & THREE_DECIMAL
    assert not WHOLE_UNITS_ONLY & (ZERO_DECIMAL | THREE_DECIMAL)
    assert ZERO_DECIMAL | THREE_DECIMAL | WHOLE_UNITS_ONLY < CURRENCIES
    assert all(code == code.lower() and len(code) == 3 for code in CURRENCIES)


@pytest.mark.parametrize(
    ("amount", "currency", "problem"),
    [
        (1, "usd", None),
        (MAX_AMOUNT, "usd", None),
        (1, "jpy", None),
        (10, "kwd", None),
        (100, "isk", None),
        (3_851, "huf", None),
        (3_851, "twd", None),
        (0, "usd", "more than zero"),
        (-100, "isk", "more than zero"),
        (MAX_AMOUNT + 1, "usd", "not be more"),
        (11, "kwd", "last digit"),
        (110, "isk", "last two digits"),
        (101, "ugx", "last two digits"),
    ],
)
def test_an_amount_that_the_currency_has_not_is_refused(
    amount: int, currency: str, problem: str | None
) -> None:
    said = amount_problem(amount, currency)
    assert said is None if problem is None else said is not None and problem in said


@given(amount=st.integers(1, MAX_AMOUNT), currency=st.sampled_from(sorted(CURRENCIES)))
def test_no_digit_is_lost_between_the_units(amount: int, currency: str) -> None:
    major = Money(amount, currency).major()
    assert major * 10 ** decimals(currency) == amount
    assert -major.as_tuple().exponent == decimals(currency)  # type: ignore[operator]
    assert isinstance(major, Decimal)
