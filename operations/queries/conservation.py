"""Where the captured money is: per payment, per account and in all, never across currencies."""

from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Q, Sum

from operations.domain.access import Accounts
from operations.domain.conservation import Balance, Counted, balance
from operations.domain.money import Money
from operations.domain.statuses import UNRESOLVED, Attention, Status
from operations.models import Operation, Payment, ProviderRefund

_GONE = ("failed", "canceled")
#: What may be out: not settled, or failed with something standing against it.
_UNDECIDED = Q(status__in=UNRESOLVED) | Q(
    status=Status.FAILED, attention__contains=[Attention.CONFLICT]
)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The balance of a payment, or the sum of many in one currency. Amounts as money."""

    currency: str
    balance: Balance
    payments: int = 1

    def money(self, amount: int) -> Money:
        """An amount in this sheet's currency."""
        return Money(amount, self.currency)

    @property
    def amounts(self) -> dict[str, Money]:
        """Every part as money, for a page."""
        names = (
            "captured",
            "by_us",
            "by_others",
            "unknown",
            "free",
            "least_out",
            "most_out",
            "unexplained",
        )
        return {name: self.money(getattr(self.balance, name)) for name in names}


@dataclass(frozen=True, kw_only=True)
class AccountSheet:
    """All payments of an account in one currency; `account` "" stands for all accounts."""

    account: str
    sheet: Sheet


def payment_sheet(payment: Payment) -> Sheet:
    """The balance of one payment. Two queries."""
    names = Q(charge=payment.charge)
    if payment.payment_intent:
        names |= Q(payment_intent=payment.payment_intent, charge="")
    refunds = (
        ProviderRefund.objects.filter(names, account_id=payment.account_id)
        .exclude(status__in=_GONE)
        .aggregate(
            ours=Sum("amount", filter=Q(operation__isnull=False), default=0),
            others=Sum("amount", filter=Q(operation__isnull=True), default=0),
        )
    )
    doubt = (
        Operation.objects.filter(_UNDECIDED, payment=payment, attempts_made__gt=0)
        .exclude(pk__in=_with_a_refund(payment))
        .aggregate(amount=Sum("amount", default=0))
    )
    counted = Counted(
        captured=payment.captured,
        by_us=refunds["ours"],
        by_others=refunds["others"],
        provider_total=payment.refunded,
        in_doubt=doubt["amount"],
    )
    return Sheet(currency=payment.currency, balance=balance(counted))


def _with_a_refund(payment: Payment) -> list[object]:
    rows = ProviderRefund.objects.filter(operation__payment=payment).exclude(status__in=_GONE)
    return list(rows.values_list("operation_id", flat=True))


# One payment a line, then one account and currency a line. The rule of a single payment, in the
# database's words; a test holds both against each other.
_SHEETS = """
WITH refund AS (
    SELECT account_id, charge,
           sum(amount) FILTER (WHERE operation_id IS NOT NULL) AS ours,
           sum(amount) FILTER (WHERE operation_id IS NULL) AS others
    FROM operations_providerrefund
    WHERE status NOT IN ('failed', 'canceled') AND charge <> ''
    GROUP BY account_id, charge
), doubt AS (
    SELECT o.payment_id, sum(o.amount) AS amount
    FROM operations_operation AS o
    WHERE (o.status IN ('open', 'processing', 'unknown')
           OR (o.status = 'failed' AND 'conflict' = ANY(o.attention)))
      AND o.attempts_made > 0
      AND NOT EXISTS (
          SELECT FROM operations_providerrefund AS r
          WHERE r.operation_id = o.id AND r.status NOT IN ('failed', 'canceled'))
    GROUP BY o.payment_id
), part AS (
    SELECT p.account_id, p.currency, p.captured,
           coalesce(refund.ours, 0) AS ours, coalesce(refund.others, 0) AS others,
           p.refunded AS total, coalesce(doubt.amount, 0) AS doubt,
           greatest(coalesce(refund.ours, 0) + coalesce(refund.others, 0), p.refunded) AS least
    FROM operations_payment AS p
    LEFT JOIN refund ON refund.account_id = p.account_id AND refund.charge = p.charge
    LEFT JOIN doubt ON doubt.payment_id = p.id
), line AS (
    SELECT part.*, greatest(captured, least) AS ceiling,
           least(greatest(captured, least), least + doubt) AS most
    FROM part
)
SELECT a.name, line.currency, count(*), sum(captured), sum(ours), sum(others),
       sum(most - ours - others), sum(ceiling - most), sum(least), sum(most),
       sum(greatest(0, total - ours - others))
FROM line JOIN operations_account AS a ON a.id = line.account_id
WHERE a.livemode = %(livemode)s
    AND (%(accounts)s::bigint[] IS NULL OR a.id = ANY (%(accounts)s))
GROUP BY GROUPING SETS ((a.name, line.currency), (line.currency))
ORDER BY a.name NULLS FIRST, line.currency
"""


def account_sheets(*, livemode: bool, accounts: Accounts = None) -> list[AccountSheet]:
    """All payments of these accounts by account and currency, and in all by currency (these first).

    `unexplained` counts only what a provider's total holds beyond the refunds that we know.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _SHEETS,
            {
                "livemode": livemode,
                "accounts": None if accounts is None else sorted(accounts),
            },
        )
        rows = cursor.fetchall()
    return [_sheet(*row) for row in rows]


def _sheet(name: str | None, currency: str, payments: int, *sums: Any) -> AccountSheet:
    captured, by_us, by_others, unknown, free, least_out, most_out, unexplained = map(int, sums)
    return AccountSheet(
        account=name or "",
        sheet=Sheet(
            currency=currency,
            payments=payments,
            balance=Balance(
                captured=captured,
                by_us=by_us,
                by_others=by_others,
                unknown=unknown,
                free=free,
                least_out=least_out,
                most_out=most_out,
                unexplained=unexplained,
            ),
        ),
    )
