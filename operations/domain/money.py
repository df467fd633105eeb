"""Amounts as the provider counts them: integers in the currency's Stripe unit.

Source of the tables: Stripe, "Supported currencies" (zero-decimal, three-decimal and the two
currencies that are written with two decimals although they have none).
"""

import re
from dataclasses import dataclass
from decimal import Decimal

ZERO_DECIMAL = frozenset(
    [
        *("bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga"),
        *("pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf"),
    ]
)
THREE_DECIMAL = frozenset(["bhd", "jod", "kwd", "omr", "tnd"])
#: Written with two decimals at Stripe, but only whole units exist: the last two digits are 00.
WHOLE_UNITS_ONLY = frozenset(["isk", "ugx"])

_TWO_DECIMAL = [
    "usd",
    "aed",
    "afn",
    "all",
    "amd",
    "ang",
    "aoa",
    "ars",
    "aud",
    "awg",
    "azn",
    "bam",
    "bbd",
    "bdt",
    "bgn",
    "bmd",
    "bnd",
    "bob",
    "brl",
    "bsd",
    "bwp",
    "byn",
    "bzd",
    "cad",
    "cdf",
    "chf",
    "cny",
    "cop",
    "crc",
    "cve",
    "czk",
    "dkk",
    "dop",
    "dzd",
    "egp",
    "etb",
    "eur",
    "fjd",
    "fkp",
    "gbp",
    "gel",
    "gip",
    "gmd",
    "gtq",
    "gyd",
    "hkd",
    "hnl",
    "htg",
    "huf",
    "idr",
    "ils",
    "inr",
    "isk",
    "jmd",
    "kes",
    "kgs",
    "khr",
    "kyd",
    "kzt",
    "lak",
    "lbp",
    "lkr",
    "lrd",
    "lsl",
    "mad",
    "mdl",
    "mkd",
    "mmk",
    "mnt",
    "mop",
    "mur",
    "mvr",
    "mwk",
    "mxn",
    "myr",
    "mzn",
    "nad",
    "ngn",
    "nio",
    "nok",
    "npr",
    "nzd",
    "pab",
    "pen",
    "pgk",
    "php",
    "pkr",
    "pln",
    "qar",
    "ron",
    "rsd",
    "rub",
    "sar",
    "sbd",
    "scr",
    "sek",
    "sgd",
    "shp",
    "sle",
    "sos",
    "srd",
    "std",
    "szl",
    "thb",
    "tjs",
    "top",
    "try",
    "ttd",
    "twd",
    "tzs",
    "uah",
    "ugx",
    "uyu",
    "uzs",
    "wst",
    "xcd",
    "xcg",
    "yer",
    "zar",
    "zmw",
]
CURRENCIES = frozenset(_TWO_DECIMAL) | ZERO_DECIMAL | THREE_DECIMAL

#: Twelve digits, the longest amount Stripe takes in any currency.
MAX_AMOUNT = 999_999_999_999


@dataclass(frozen=True, slots=True)
class Money:
    """`amount` in the Stripe unit of `currency` (a lower-case ISO code)."""

    amount: int
    currency: str

    def major(self) -> Decimal:
        """The amount in whole units, with exactly the decimals of the currency."""
        return Decimal(self.amount).scaleb(-decimals(self.currency))


def decimals(currency: str) -> int:
    """How many of the amount's digits stand behind the decimal point at Stripe."""
    if currency in ZERO_DECIMAL:
        return 0
    return 3 if currency in THREE_DECIMAL else 2


def shown_decimals(money: Money) -> int:
    """How many decimals people write: none where only whole units exist."""
    if money.currency in WHOLE_UNITS_ONLY and money.amount % 100 == 0:
        return 0
    return decimals(money.currency)


def amount_problem(amount: int, currency: str) -> str | None:
    """Why this amount cannot be refunded in this currency, or None."""
    if amount <= 0:
        return "The amount must be more than zero."
    if amount > MAX_AMOUNT:
        return f"The amount must not be more than {MAX_AMOUNT}."
    if currency in THREE_DECIMAL and amount % 10:
        return f"In {currency.upper()} the last digit of the amount must be 0."
    if currency in WHOLE_UNITS_ONLY and amount % 100:
        return f"In {currency.upper()} the last two digits of the amount must be 00."
    return None


_WRITTEN = re.compile(r"(-?)([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15})(?:\.([0-9]{1,9}))?")


def minor_units(text: str, currency: str) -> int:
    """An amount as people and exports write it ("1,250.50"), in the Stripe unit, to the last digit.

    Digits behind the currency's own must be zeros. A comma stands between thousands only, and only
    where it cannot be meant as the decimal point. Raises ValueError with the reason.
    """
    written = _WRITTEN.fullmatch(text)
    if written is None:
        raise ValueError(f"The amount \u201c{text[:40]}\u201d is not a number such as 1250.50.")
    sign, whole, behind = written[1], written[2], written[3] or ""
    places = decimals(currency)
    if "," in whole and places and not behind:
        raise ValueError(f"The comma in \u201c{text[:40]}\u201d could be a decimal point.")
    if behind[places:].strip("0"):
        raise ValueError(f"\u201c{text[:40]}\u201d: {currency.upper()} has {places} decimals.")
    amount = int(whole.replace(",", "") + behind[:places].ljust(places, "0"))
    if sign or amount == 0:
        raise ValueError("The amount must be more than zero.")
    if amount > MAX_AMOUNT:
        raise ValueError(f"The amount must not be more than {MAX_AMOUNT}.")
    return amount
