"""Where all the money is, without counting every payment while somebody waits.

Few payments are counted as they are. Many are counted by a job, and pages show its last count.
"""

from dataclasses import dataclass, fields
from datetime import datetime

from django.core.cache import cache
from django.db import connection

from operations.domain.access import Accounts
from operations.domain.conservation import Balance
from operations.models import Account
from operations.queries.conservation import AccountSheet, Sheet, account_sheets

#: Up to so many payments a page counts itself.
MOST_AT_ONCE = 100_000
#: How long a count is kept when no newer one replaces it, in seconds.
_KEPT_S = 86_400


@dataclass(frozen=True, kw_only=True)
class MoneyCounted:
    """The sheets in all and by account. `at`: when a job counted them; None: just now."""

    in_all: list[AccountSheet]
    by_account: list[AccountSheet]
    at: datetime | None = None
    #: False while there are many payments and no job has counted them yet.
    is_counted: bool = True


def money_counted(
    *, livemode: bool, accounts: Accounts = None, most_at_once: int = MOST_AT_ONCE
) -> MoneyCounted:
    """The money of these accounts: as it stands, or as it was counted last when there is much."""
    if not _are_many(most_at_once):
        sheets = account_sheets(livemode=livemode, accounts=accounts)
        return MoneyCounted(
            in_all=[row for row in sheets if not row.account],
            by_account=[row for row in sheets if row.account],
        )
    kept: tuple[datetime, list[AccountSheet]] | None = cache.get(_key(livemode))
    if kept is None:
        return MoneyCounted(in_all=[], by_account=[], is_counted=False)
    at, rows = kept
    if accounts is not None:
        seen = Account.objects.filter(pk__in=accounts, livemode=livemode)
        names = set(seen.values_list("name", flat=True))
        rows = [row for row in rows if row.account in names]
    return MoneyCounted(in_all=_in_all(rows), by_account=rows, at=at)


def count_money(*, now: datetime, most_at_once: int = MOST_AT_ONCE) -> bool:
    """Count every payment for the pages, when there are many. Tells whether there are."""
    if not _are_many(most_at_once):
        return False
    for livemode in (True, False):
        rows = [row for row in account_sheets(livemode=livemode) if row.account]
        cache.set(_key(livemode), (now, rows), _KEPT_S)
    return True


def _are_many(most: int) -> bool:
    """By what the database guesses: counting them exactly is what this avoids."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE oid = 'operations_payment'::regclass")
        return bool(cursor.fetchone()[0] > most)


def _key(livemode: bool) -> str:
    return f"money-counted-{'live' if livemode else 'test'}"


def _in_all(rows: list[AccountSheet]) -> list[AccountSheet]:
    """One sheet a currency."""
    by_currency: dict[str, list[Sheet]] = {}
    for row in rows:
        by_currency.setdefault(row.sheet.currency, []).append(row.sheet)
    return [
        AccountSheet(account="", sheet=_sum(currency, sheets))
        for currency, sheets in sorted(by_currency.items())
    ]


def _sum(currency: str, sheets: list[Sheet]) -> Sheet:
    amounts = {
        part.name: sum(getattr(sheet.balance, part.name) for sheet in sheets)
        for part in fields(Balance)
    }
    return Sheet(
        currency=currency,
        balance=Balance(**amounts),
        payments=sum(sheet.payments for sheet in sheets),
    )
