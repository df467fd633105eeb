"""Conservation: nothing of a payment gets lost. All amounts in the payment's Stripe unit.

captured = refunded by us + by others + in doubt + free, whatever is known and whatever is not.
What can't be decided is an interval: the least and the most that may be out.
"""

from dataclasses import dataclass

from operations.domain.statuses import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What is known of one payment.

    `by_us` and `by_others` are the refunds we know that count as refunded; `provider_total` is
    what the provider says is refunded; `in_doubt` what our operations may have sent beside.
    """

    captured: int
    by_us: int
    by_others: int
    provider_total: int
    in_doubt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Where the captured money is. The four parts add up to `captured` (or to more refunds than
    that, when the provider shows them).

    `unexplained` is what the provider's total holds beyond every refund that we know: below zero
    when it lags behind them.
    """

    captured: int
    by_us: int
    by_others: int
    unknown: int
    free: int
    least_out: int
    most_out: int
    unexplained: int


def balance(counted: Counted) -> Balance:
    """The balance of one payment."""
    known = counted.by_us + counted.by_others
    least = max(known, counted.provider_total)
    ceiling = max(counted.captured, least)
    most = min(ceiling, least + counted.in_doubt)
    return Balance(
        captured=counted.captured,
        by_us=counted.by_us,
        by_others=counted.by_others,
        unknown=most - known,
        free=ceiling - most,
        least_out=least,
        most_out=most,
        unexplained=counted.provider_total - known,
    )


@dataclass(frozen=True, slots=True)
class Interval:
    """The least and the most that may be out."""

    least: int
    most: int

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.least + other.least, self.most + other.most)


NOTHING = Interval(0, 0)


def out_of_operation(
    *, status: Status, amount: int, was_sent: bool, has_refund: bool, is_contradicted: bool = False
) -> Interval:
    """What of an operation's amount is out. `has_refund`: the provider shows one that counts.

    One that a person closed as failed stays in doubt for nobody, unless something stands against
    it that nobody has answered (`is_contradicted`); a refund that shows up decides.
    """
    if has_refund or status is Status.SUCCEEDED:
        return Interval(amount, amount)
    if not was_sent or (status is Status.FAILED and not is_contradicted):
        return NOTHING
    return Interval(0, amount)
