"""Amounts as people type them. What could be meant in two ways is refused, never guessed."""

import re

from operations.domain.money import (
    MAX_AMOUNT,
    WHOLE_UNITS_ONLY,
    Money,
    amount_problem,
    decimals,
)
from operations.domain.sentences import Sentence, say

_NUMBER = re.compile(r"([0-9]+)(?:\.([0-9]+))?")
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+")
#: A number of this many digits is beyond any amount; it is not even read.
_MOST_DIGITS = 20


def typed_amount(text: str, currency: str) -> int | Sentence:
    """The amount in the Stripe unit, or a sentence that says what to type instead.

    Digits 0 to 9 with a point before the decimals; commas only where they stand between thousands
    and a point follows ("1,234.50"). Spaces around it are left out.
    """
    text = text.strip(" ")
    written = text.replace(",", "") if _GROUPED.fullmatch(text) else text
    number = _NUMBER.fullmatch(written)
    if number is None or len(written) > _MOST_DIGITS:
        return _unreadable(text, currency)
    whole, behind = number[1], number[2] or ""
    places = 0 if currency in WHOLE_UNITS_ONLY else decimals(currency)
    if behind[places:].strip("0"):
        return _too_exact(currency, places)
    amount = int(whole + behind[:places].ljust(decimals(currency), "0"))
    if amount == 0:
        return say("The amount must be more than zero: type it as {example}.", **_like(currency))
    if amount > MAX_AMOUNT:
        return say("The amount can't be more than {most}.", most=Money(MAX_AMOUNT, currency))
    if amount_problem(amount, currency):
        return say(
            "In {currency} the last of the three decimals is 0: type it as {example}.",
            currency=currency.upper(),
            **_like(currency),
        )
    return amount


def _unreadable(text: str, currency: str) -> Sentence:
    like = _like(currency)
    if not text:
        return say("Type the amount, as {example}.", **like)
    if len(text) > _MOST_DIGITS:
        return say("This is too long for an amount: type it as {example}.", **like)
    if text.startswith(("-", "\N{MINUS SIGN}", "+")):
        return say("Type the amount without a sign, as {example}.", **like)
    if re.fullmatch(r"[0-9.,]+[eE][0-9+-]+", text):
        return say("Type all digits of the amount, as {example}.", **like)
    if any(each.isdigit() and not each.isascii() for each in text):
        return say("Use the digits 0 to 9: type the amount as {example}.", **like)
    if "," in text and re.fullmatch(r"[0-9.,]+", text):
        return say(
            "The comma could mean two things. Type the amount as {example}, without commas.", **like
        )
    if text.count(".") > 1 and re.fullmatch(r"[0-9.]+", text):
        return say(
            "There is more than one point. Type the amount as {example}, with at most one.", **like
        )
    return say("Type the number alone, as {example}.", **like)


def _too_exact(currency: str, places: int) -> Sentence:
    if places == 0:
        return say(
            "{currency} has no decimals: type the amount as {example}.",
            currency=currency.upper(),
            **_like(currency),
        )
    return say(
        "{currency} has {places} decimals: type the amount as {example}.",
        currency=currency.upper(),
        places=places,
        **_like(currency),
    )


def _like(currency: str) -> dict[str, str]:
    """An example that fits the currency."""
    if currency in WHOLE_UNITS_ONLY or decimals(currency) == 0:
        return {"example": "1234"}
    return {"example": "1234.560" if decimals(currency) == 3 else "1234.50"}
