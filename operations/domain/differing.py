"""What differs between an operation and a refund, in words."""

from operations.domain.answers import RefundFacts
from operations.domain.matching import Field, RefundTerms, differences
from operations.domain.money import Money
from operations.domain.sentences import Outside, Sentence, gettext_noop, say

_SAYS: dict[Field, str] = {
    Field.AMOUNT: gettext_noop("Amount: we sent {sent}, there it is {provider}"),
    Field.CURRENCY: gettext_noop("Currency: we sent {sent}, there it is {provider}"),
    Field.CHARGE: gettext_noop("Charge: we sent {sent}, there it is {provider}"),
    Field.PAYMENT_INTENT: gettext_noop("Payment: we sent {sent}, there it is {provider}"),
    Field.REFERENCE: gettext_noop("Reference: we sent {sent}, there it is {provider}"),
    Field.ACCOUNT: gettext_noop("Account: we sent {sent}, there it is {provider}"),
    Field.MODE: gettext_noop("Mode: we sent {sent}, there it is {provider}"),
}


def what_differs(terms: RefundTerms, refund: RefundFacts) -> tuple[Sentence, ...]:
    """A sentence for each field that contradicts; none when nothing does."""
    return tuple(
        say(
            _SAYS[Field.AMOUNT],
            sent=Money(terms.amount, terms.currency),
            provider=Money(refund.amount, refund.currency or terms.currency),
        )
        if row.field is Field.AMOUNT
        else say(_SAYS[row.field], sent=Outside(row.sent), provider=Outside(row.provider))
        for row in differences(terms, refund)
    )
