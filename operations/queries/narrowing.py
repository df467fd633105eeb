"""What narrows a list of operations, as conditions in SQL over `o`, the operation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from operations.domain.access import Accounts

#: A person claims this many at most, as far as lists go.
_MOST_CLAIMED = 1_000


@dataclass(frozen=True, kw_only=True)
class Narrow:
    """Filters that are set; None and "" filter nothing. Amounts in the unit of `currency`.

    `claimed`: the id of a person, `anybody` or `nobody`. `agent`: an API key. `older_than`: since
    when it needs a person, or was asked for.
    """

    status: str = ""
    reason: str = ""
    attention: str = ""
    account: int | None = None
    currency: str = ""
    least: int | None = None
    most: int | None = None
    older_than: timedelta | None = None
    claimed: str = ""
    agent: int | None = None
    order: str = ""


class Condition(NamedTuple):
    """SQL with `%s` for its values."""

    sql: str
    values: tuple[Any, ...] = ()


def conditions(narrow: Narrow, now: datetime) -> dict[str, Condition]:
    """The conditions of the filters that are set, by name."""
    found: dict[str, Condition] = {}
    for name, sql in _SIMPLE.items():
        value = getattr(narrow, name)
        if value not in (None, ""):
            found[name] = Condition(sql, (value,))
    if narrow.older_than is not None:
        found["older_than"] = Condition(
            "coalesce(o.needs_person_since, o.created_at) <= %s", (now - narrow.older_than,)
        )
    match narrow.claimed:
        case "":
            pass
        case "nobody":
            found["claimed"] = Condition(
                "NOT EXISTS (SELECT FROM operations_claim AS c"
                " WHERE c.operation_id = o.id AND c.expires_at > %s)",
                (now,),
            )
        case "anybody":
            found["claimed"] = claimed_by(None, now)
        case person:
            found["claimed"] = claimed_by(person, now)
    return found


def of_accounts(accounts: Accounts, narrow: Narrow) -> dict[str, Condition]:
    """Only operations of these accounts, whatever else is asked for."""
    if accounts is None:
        return {}
    if len(accounts) == 1 and narrow.account is None:
        # As if it were filtered by, which indexes serve.
        return {"account": Condition(_SIMPLE["account"], tuple(accounts))}
    return {"accounts": Condition("o.account_id = ANY (%s)", (sorted(accounts),))}


def claimed_by(person: str | None, now: datetime) -> Condition:
    """What this person (None: anybody) works on. As an array, whose rows are read by their keys."""
    whose = "" if person is None else " AND holder = %s"
    values = (now,) if person is None else (now, person)
    return Condition(
        "o.id = ANY (ARRAY(SELECT operation_id FROM operations_claim"  # noqa: S608 - constants
        f" WHERE expires_at > %s{whose} LIMIT {_MOST_CLAIMED}))",
        values,
    )


#: What waits for a second person. Such proposals are made by hand, so there are few.
WAITS_FOR_SECOND = Condition(
    "o.id = ANY (ARRAY(SELECT operation_id FROM operations_proposal"
    " WHERE state = 'waiting' ORDER BY operation_id LIMIT 10000))"
)

_SIMPLE: Mapping[str, str] = {
    "order": "o.order_id = %s",
    "reason": "o.unknown_reason = %s",
    "attention": "o.attention @> ARRAY[%s]::varchar[]",
    "account": "o.account_id = %s",
    "agent": "o.opened_by_id = %s",
    "status": "o.status = %s",
    "currency": "o.currency = %s",
    "least": "o.amount >= %s",
    "most": "o.amount <= %s",
}
