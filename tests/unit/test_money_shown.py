"""Money as each language writes it, with the decimals that Stripe counts."""

import pytest
from django.utils import translation

from operations.domain.money import Money
from operations.templatetags.charting import figure, span
from operations.templatetags.showing import money


@pytest.mark.parametrize(
    ("amount", "currency", "english", "german"),
    [
        (123_450, "usd", "$1,234.50", "1.234,50\N{NO-BREAK SPACE}$"),
        (5_000, "jpy", "¥5,000", "5.000\N{NO-BREAK SPACE}¥"),
        (5_120, "kwd", "KWD\N{NO-BREAK SPACE}5.120", "5,120\N{NO-BREAK SPACE}KWD"),
        (150_000, "isk", "ISK\N{NO-BREAK SPACE}1,500", "1.500\N{NO-BREAK SPACE}ISK"),
        (100_000, "ugx", "UGX\N{NO-BREAK SPACE}1,000", "1.000\N{NO-BREAK SPACE}UGX"),
        (3_850, "huf", "HUF\N{NO-BREAK SPACE}38.50", "38,50\N{NO-BREAK SPACE}HUF"),
        (-3_800, "usd", "-$38.00", "-38,00\N{NO-BREAK SPACE}$"),
    ],
)
def test_money_is_shown_as_the_reader_writes_it(
    amount: int, currency: str, english: str, german: str
) -> None:
    for language, text in (("en", english), ("de", german)):
        with translation.override(language):
            assert money(Money(amount, currency)) == text


@pytest.mark.parametrize(
    ("value", "places", "english", "german"),
    [
        (18 / 17, 3, "1.059", "1,059"),
        (1.99996, 4, "2.0000", "2,0000"),
        (12_345, 0, "12,345", "12.345"),
        (None, 2, "-", "-"),
    ],
)
def test_figures_are_rounded_not_cut(
    value: float | None, places: int, english: str, german: str
) -> None:
    for language, text in (("en", english), ("de", german)):
        with translation.override(language):
            assert figure(value, places) == text
    assert span(5_400) == "1 h 30 m"
    assert span(None) == "-"
