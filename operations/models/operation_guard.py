"""What the database holds an operation to, whoever writes it and in whatever words."""

from operations.domain.closure import REOPENED
from operations.domain.statuses import (
    CLOSED_BY_PERSON,
    SETTLED,
    UNRESOLVED,
    Attention,
    Status,
    UnknownReason,
    status_changes,
)
from operations.models.guards import Guard, Rule, check, frozen, known

_FLAGS = ", ".join(f"'{flag}'" for flag in sorted(Attention))
_MOVES = ", ".join(f"('{start}', '{end}')" for start, end in sorted(status_changes()))
#: What of an operation says only when to look or send next.
_PLAN = "ARRAY['lookups_made', 'next_check_at', 'next_send_at']"

_IS_NOT_TAKEN_BACK = f"""OLD.failure_code <> '{CLOSED_BY_PERSON}' OR NOT EXISTS (
            SELECT 1 FROM operations_proposal AS proposal
            WHERE proposal.operation_id = NEW.id AND proposal.outcome = '{REOPENED}'
              AND proposal.state = 'approved' AND proposal.revision = OLD.revision)"""  # noqa: S608 - words of ours

_SHAPE = (
    check(
        "operation_unknown_has_a_reason",
        f"CASE NEW.status WHEN '{Status.UNKNOWN}'"
        f" THEN {known('unknown_reason', sorted(UnknownReason))} ELSE NEW.unknown_reason = '' END",
    ),
    check(
        "operation_success_names_a_refund",
        f"NEW.status <> '{Status.SUCCEEDED}' OR NEW.provider_object_id <> ''",
    ),
    check(
        "operation_settled_has_a_time",
        f"({known('status', sorted(SETTLED))} AND NEW.settled_at IS NOT NULL)"
        f" OR ({known('status', sorted(UNRESOLVED))} AND NEW.settled_at IS NULL)",
    ),
    check("operation_lease_is_whole", "(NEW.lease_owner = '') = (NEW.lease_expires_at IS NULL)"),
    check("operation_attention_known", f"NEW.attention <@ ARRAY[{_FLAGS}]::varchar[]"),
)

_OPENED = (
    Rule(name="operation_starts_open", when=f"NEW.status <> '{Status.OPEN}'"),
    # An empty key would be replaced by a random one on its way to Stripe.
    check("operation_has_a_key", "NEW.idempotency_key <> ''"),
    check("operation_amount_positive", "NEW.amount > 0"),
    check("operation_currency_code", "NEW.currency ~ '^[a-z]{3}$'"),
    *_SHAPE,
    # An operation belongs to the account of its payment and is in its currency.
    Rule(
        name="operation_fits_its_payment",
        when="true",
        query="""EXISTS (
            SELECT 1 FROM operations_payment AS payment
            WHERE payment.id = NEW.payment_id
              AND (payment.account_id <> NEW.account_id OR payment.currency <> NEW.currency))""",
    ),
)

_CHANGED = (
    # Every change raises the revision, so that no page and no job acts on a view that is not the
    # last one; only when to look or send next may change without.
    Rule(
        name="operation_revision_counts",
        when="NEW.revision <> OLD.revision + 1 AND (NEW.revision <> OLD.revision"
        f" OR (to_jsonb(NEW) - {_PLAN}) <> (to_jsonb(OLD) - {_PLAN}))",
    ),
    Rule(
        name="operation_status_moves",
        when=f"NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN ({_MOVES})",
    ),
    # An end is taken back only where people had found it, and two of them say so.
    Rule(
        name="operation_reopened_by_two_people",
        when=f"{known('status', sorted(UNRESOLVED))}"
        f" AND OLD.status IN ('{Status.SUCCEEDED}', '{Status.FAILED}')",
        query=_IS_NOT_TAKEN_BACK,
    ),
    frozen(
        "operation_frozen",
        [
            "id",
            "account_id",
            "payment_id",
            "opened_by_id",
            "group",
            "reissue_of_id",
            "kind",
            "order_id",
            "reference",
            "customer_account",
            "amount",
            "currency",
            "reason",
            "input_hash",
            "environment",
            "endpoint",
            "idempotency_key",
            "parameters",
            "created_at",
        ],
    ),
    Rule(
        name="operation_refund_written_once",
        when="OLD.provider_object_id <> '' AND NEW.provider_object_id <> OLD.provider_object_id",
    ),
    Rule(
        name="operation_counts_kept",
        when="NEW.attempts_made < OLD.attempts_made OR NEW.lookups_made < OLD.lookups_made",
    ),
    # The key's window is promised from the first send and is never stretched.
    Rule(
        name="operation_first_send_kept",
        when="OLD.first_sent_at IS NOT NULL"
        " AND NEW.first_sent_at IS DISTINCT FROM OLD.first_sent_at",
    ),
    Rule(
        name="operation_key_window_kept",
        when="OLD.key_window_closes_at IS NOT NULL AND (NEW.key_window_closes_at IS NULL"
        " OR NEW.key_window_closes_at > OLD.key_window_closes_at)",
    ),
    *_SHAPE,
    # A flag leaves an operation only after a person has cleared every fact that raised it.
    Rule(
        name="operation_flags_go_by_people",
        when="NOT (OLD.attention <@ NEW.attention)",
        query="""EXISTS (
            SELECT 1 FROM operations_flag AS standing
            WHERE standing.operation_id = NEW.id
              AND standing.cleared_at IS NULL
              AND standing.attention <> ALL (NEW.attention))""",
    ),
    # A lease stays until its attempt is finished: the sweep finds lost sends by their lease.
    Rule(
        name="operation_lease_covers_the_send",
        when="OLD.lease_owner <> '' AND NEW.lease_owner <> OLD.lease_owner",
        query="""EXISTS (
            SELECT 1 FROM operations_attempt WHERE operation_id = NEW.id AND outcome = '')""",
    ),
)

OPERATION_GUARD = Guard(name="operation_guard", inserted=_OPENED, updated=_CHANGED)
