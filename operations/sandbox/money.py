"""Shows an amount the way Stripe's error messages do. For text only, never for arithmetic."""

from __future__ import annotations

SYMBOLS = {"usd": "$", "eur": "€", "gbp": "£", "jpy": "¥"}

# Stripe, "Supported currencies": ISK and UGX count two decimals at Stripe although ISO has none.
ZERO_DECIMAL = frozenset(
    "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split()  # noqa: SIM905
)
THREE_DECIMAL = frozenset({"bhd", "jod", "kwd", "omr", "tnd"})


def shown(amount: int, currency: str) -> str:
    """`amount` in Stripe's unit as text: `$25.00`, `¥5,000`, `12.00 CHF`."""
    digits = 0 if currency in ZERO_DECIMAL else 3 if currency in THREE_DECIMAL else 2
    whole, rest = divmod(amount, 10**digits)
    number = f"{whole:,}" + (f".{rest:0{digits}}" if digits else "")
    symbol = SYMBOLS.get(currency)
    return symbol + number if symbol else f"{number} {currency.upper()}"
