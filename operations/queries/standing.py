"""What a request may have to do with, in one statement."""

from typing import Any
from uuid import UUID

from operations.domain.identity import KIND_REFUND, RefundInput
from operations.domain.standing import Related, Tie
from operations.domain.statuses import Status
from operations.models import Account
from operations.models.statements import build, columns, run, width

# An account comes with no related operation, too. Every branch has an index of its own.
_FIND = f"""
WITH account AS MATERIALIZED (
    SELECT * FROM operations_account
    WHERE livemode = $1 AND (name = $2 OR provider_account = $2)
    ORDER BY id LIMIT 1
), found AS (
    SELECT '{Tie.TOOL_CALL}' AS tie, operation_id FROM operations_request
    WHERE tool_call_id = $3 AND tool_call_id <> '' AND agent_run_id = $4
      AND api_key_id IS NOT DISTINCT FROM $5::bigint
    UNION ALL
    SELECT '{Tie.TOKEN}', operation_id FROM operations_requesttoken
    WHERE account_id = (SELECT id FROM account) AND customer_account = $6
      AND kind = '{KIND_REFUND}' AND token = $7 AND token <> ''
    UNION ALL
    SELECT '{Tie.ORDER}', id FROM operations_operation WHERE order_id = $8 AND reference = $9
    UNION ALL
    SELECT '{Tie.PAYMENT}', id FROM operations_operation
    WHERE payment_id = $10::bigint AND status <> '{Status.FAILED}'
)
SELECT {columns(Account, "account")}, related.*
FROM account
LEFT JOIN (
    SELECT found.tie, o.id, o.account_id, a.livemode, o.status, o.input_hash, p.charge,
           p.payment_intent, o.amount, o.currency,
           EXISTS (SELECT FROM operations_providerrefund AS r
                   WHERE r.operation_id = o.id AND r.status NOT IN ('failed', 'canceled')),
           o.provider_object_id, o.created_at, o.settled_at, o.lease_expires_at
    FROM found
    JOIN operations_operation AS o ON o.id = found.operation_id
    JOIN operations_payment AS p ON p.id = o.payment_id
    JOIN operations_account AS a ON a.id = o.account_id
) AS related ON true
"""  # noqa: S608 - words and columns of our own

_RELATED = width(Account)


def related_to(
    wish: RefundInput,
    *,
    livemode: bool,
    account: str,
    api_key_id: int | None,
    tool_call_id: str,
    agent_run_id: str,
    token: str,
    payment_id: int | None = None,
) -> tuple[Account | None, list[Related]]:
    """The account of this name or provider's id, and the operations that a request may stand for.

    Those of the payment are among them when its row's id is given.
    """
    rows = run(
        _FIND,
        [
            livemode,
            account,
            tool_call_id,
            agent_run_id,
            api_key_id,
            wish.customer_account,
            token,
            wish.order_id,
            wish.reference,
            payment_id,
        ],
    )
    if not rows:
        return None, []
    return (
        build(Account, rows[0][:_RELATED]),
        [_related(*row[_RELATED:]) for row in rows if row[_RELATED] is not None],
    )


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
