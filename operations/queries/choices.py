"""What the queue's filters offer: accounts, agents, and who has claimed anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from operations.domain.access import Accounts

#: A list to choose from has no more than this.
_MOST = 100

#: The same for people of single accounts: what occurs there.
_OF_ACCOUNTS = f"""
(SELECT 'account', id::text, name || CASE WHEN livemode THEN '' ELSE ' (test)' END
    FROM operations_account WHERE id = ANY (%(accounts)s) ORDER BY name, livemode LIMIT {_MOST})
UNION ALL
(SELECT 'agent', id::text, name FROM operations_apikey AS agent
    WHERE EXISTS (SELECT FROM operations_operation AS asked
        WHERE asked.opened_by_id = agent.id AND asked.account_id = ANY (%(accounts)s))
    ORDER BY name, id LIMIT {_MOST})
UNION ALL
(SELECT DISTINCT 'holder', holder, holder_name FROM operations_claim AS claim
    JOIN operations_operation AS held ON held.id = claim.operation_id
    WHERE claim.expires_at > %(now)s AND held.account_id = ANY (%(accounts)s)
    ORDER BY holder_name LIMIT {_MOST})
"""  # noqa: S608 - a constant

_SQL = f"""
(SELECT 'account', id::text, name || CASE WHEN livemode THEN '' ELSE ' (test)' END
    FROM operations_account ORDER BY name, livemode LIMIT {_MOST})
UNION ALL
(SELECT 'agent', id::text, name FROM operations_apikey ORDER BY name, id LIMIT {_MOST})
UNION ALL
(SELECT DISTINCT 'holder', holder, holder_name FROM operations_claim
    WHERE expires_at > %(now)s ORDER BY holder_name LIMIT {_MOST})
"""  # noqa: S608 - a constant


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Pairs of a value and its name."""

    accounts: Sequence[tuple[str, str]]
    agents: Sequence[tuple[str, str]]
    holders: Sequence[tuple[str, str]]


def choices(now: datetime, accounts: Accounts = None) -> Choices:
    """What there is at these accounts. One query."""
    found: dict[str, list[tuple[str, str]]] = {"account": [], "agent": [], "holder": []}
    with connection.cursor() as cursor:
        cursor.execute(
            _SQL if accounts is None else _OF_ACCOUNTS,
            {"now": now, "accounts": sorted(accounts or ())},
        )
        for kind, value, name in cursor.fetchall():
            found[kind].append((value, name))
    return Choices(accounts=found["account"], agents=found["agent"], holders=found["holder"])
