"""What a request may have to do with: hardly ever anything, and that is asked first."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from operations.domain.identity import KIND_REFUND, RefundInput
from operations.domain.standing import Related, Tie
from operations.domain.statuses import Status
from operations.models import Account
from operations.models.statements import Statement, build, columns, run

# Every branch has an index of its own.
_FOUND = f"""
    SELECT '{Tie.TOOL_CALL}' AS tie, operation_id FROM operations_request
    WHERE tool_call_id = $3 AND tool_call_id <> '' AND agent_run_id = $4
      AND api_key_id IS NOT DISTINCT FROM $5::bigint
    UNION ALL
    SELECT '{Tie.TOKEN}', operation_id FROM operations_requesttoken
    WHERE account_id = account.id AND customer_account = $6
      AND kind = '{KIND_REFUND}' AND token = $7 AND token <> ''
    UNION ALL
    SELECT '{Tie.ORDER}', id FROM operations_operation WHERE order_id = $8 AND reference = $9
    UNION ALL
    SELECT '{Tie.PAYMENT}', id FROM operations_operation
    WHERE status <> '{Status.FAILED}' AND payment_id = (
        SELECT id FROM operations_payment WHERE account_id = account.id AND charge = $10)
"""  # noqa: S608 - words of our own
_ACCOUNT = """
    SELECT * FROM operations_account
    WHERE livemode = $1 AND (name = $2 OR provider_account = $2)
    ORDER BY id LIMIT 1
"""
_ASK = f"""
SELECT {columns(Account, "account")}, EXISTS ({_FOUND}) FROM ({_ACCOUNT}) AS account
"""  # noqa: S608 - columns of our own
# The tables are joined only where something was found: making them ready takes longer than to look.
_FIND = f"""
WITH account AS MATERIALIZED ({_ACCOUNT})
SELECT related.* FROM account, LATERAL (
    SELECT found.tie, o.id, o.account_id, a.livemode, o.status, o.input_hash, p.charge,
           p.payment_intent, o.amount, o.currency,
           EXISTS (SELECT FROM operations_providerrefund AS r
                   WHERE r.operation_id = o.id AND r.status NOT IN ('failed', 'canceled')),
           o.provider_object_id, o.created_at, o.settled_at, o.lease_expires_at
    FROM ({_FOUND}) AS found
    JOIN operations_operation AS o ON o.id = found.operation_id
    JOIN operations_payment AS p ON p.id = o.payment_id
    JOIN operations_account AS a ON a.id = o.account_id
) AS related
"""  # noqa: S608 - words and columns of our own


def asking(
    wish: RefundInput,
    *,
    livemode: bool,
    account: str,
    api_key_id: int | None,
    tool_call_id: str,
    agent_run_id: str,
    token: str,
    charge: str = "",
) -> Statement:
    """What asks for the account of this name or provider's id, and whether a request may stand
    for something; `related_to` reads the answer.

    Operations of the payment count when its charge is given.
    """
    return _ASK, [
        livemode,
        account,
        tool_call_id,
        agent_run_id,
        api_key_id,
        wish.customer_account,
        token,
        wish.order_id,
        wish.reference,
        charge,
    ]


def related_to(
    asked: Statement, rows: Sequence[tuple[Any, ...]]
) -> tuple[Account | None, list[Related]]:
    """The account, and the operations that a request may stand for. `rows`: what `asked` gave."""
    if not rows:
        return None, []
    *account, is_related = rows[0]
    related = run(_FIND, asked[1]) if is_related else []
    return build(Account, account), [_related(*row) for row in related]


def _related(tie: str, operation_id: UUID, account_id: int, *rest: Any) -> Related:
    livemode, status, input_hash, charge, payment_intent, amount, currency, has_refund, *last = rest
    provider_object_id, created_at, settled_at, lease_expires_at = last
    return Related(
        tie=Tie(tie),
        operation_id=operation_id,
        account_id=account_id,
        livemode=livemode,
        status=Status(status),
        input_hash=input_hash,
        payment_names=(charge, payment_intent),
        amount=amount,
        currency=currency,
        has_refund=has_refund,
        provider_object_id=provider_object_id,
        created_at=created_at,
        settled_at=settled_at,
        lease_expires_at=lease_expires_at,
    )
