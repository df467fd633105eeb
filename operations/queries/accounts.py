"""What an account is doing: when it was last heard, and what is unknown at it."""

import json
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from operations.domain.access import Accounts
from operations.domain.money import Money
from operations.models import Account
from operations.queries.access import narrowed


@dataclass(frozen=True, kw_only=True)
class AccountState:
    """An account with what was last heard of it. `unknown_money`: a currency each, what may have
    moved."""

    account: Account
    webhook_at: datetime | None
    unknown: int
    unknown_money: list[Money]
    open: int


_STATES = """
SELECT account.id,
    (SELECT event.last_received_at FROM operations_webhookevent AS event
     WHERE event.event_account = account.provider_account AND event.deliveries > 0
     ORDER BY event.id DESC LIMIT 1),
    (SELECT count(*) FROM operations_operation AS operation
     WHERE operation.account_id = account.id AND operation.status = 'open'),
    coalesce((SELECT jsonb_object_agg(part.currency, jsonb_build_array(part.count, part.sum))
     FROM (SELECT currency, count(*), sum(amount) FROM operations_operation AS operation
           WHERE operation.account_id = account.id AND operation.status = 'unknown'
           GROUP BY currency) AS part), '{}'::jsonb)::text
FROM operations_account AS account
"""


def account_states(account_id: int | None = None, accounts: Accounts = None) -> list[AccountState]:
    """Every one of these accounts, or one; two queries. Only unresolved operations are counted."""
    found_accounts = Account.objects.filter(**narrowed(accounts, "pk")).order_by("name", "livemode")
    if account_id is not None:
        found_accounts = found_accounts.filter(pk=account_id)
    rows = list(found_accounts)
    with connection.cursor() as cursor:
        cursor.execute(_STATES + " WHERE account.id = ANY (%s)", [[row.pk for row in rows]])
        found = {row[0]: row[1:] for row in cursor.fetchall()}
    states = []
    for account in rows:
        webhook_at, waiting, text = found[account.pk]
        parts: dict[str, list[int]] = json.loads(text)
        states.append(
            AccountState(
                account=account,
                webhook_at=webhook_at,
                unknown=sum(count for count, _sum in parts.values()),
                unknown_money=[Money(total, code) for code, (_n, total) in sorted(parts.items())],
                open=waiting,
            )
        )
    return states
