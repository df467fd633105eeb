"""Triggers: what a table refuses, whoever asks and in whatever words."""

from collections.abc import Iterable

import pgtrigger
from django.db import models
from pgtrigger.compiler import Trigger as Compiled
from pgtrigger.compiler import UpsertTriggerSql


class AlwaysSql(UpsertTriggerSql):
    """Installs a trigger that no session can switch off."""

    def get_template(self) -> str:
        """pgtrigger's own asks a setting of the session first, which takes longer than the rule."""
        return """
            CREATE OR REPLACE FUNCTION {pgid}()
            RETURNS TRIGGER AS $$
                {declare}
                BEGIN
                    {func}
                END;
            $$ LANGUAGE plpgsql;

            DROP TRIGGER IF EXISTS {pgid} ON {table};
            CREATE {constraint} TRIGGER {pgid}
                {when} {operation} ON {table}
                {timing}
                {referencing}
                FOR EACH {level} {condition}
                EXECUTE PROCEDURE {execute};

            COMMENT ON TRIGGER {pgid} ON {table} IS '{hash}';
        """


class _Always(pgtrigger.Trigger):
    """A trigger that runs for every row of the busy tables, whatever the session has set."""

    def compile(self, model: type[models.Model]) -> Compiled:  # type: ignore[override]
        compiled = super().compile(model)  # type: ignore[arg-type]
        compiled.sql = AlwaysSql(**compiled.sql.kwargs)
        return compiled


def append_only(prefix: str) -> list[pgtrigger.Trigger]:
    """No UPDATE, no DELETE, no TRUNCATE."""
    return [
        pgtrigger.Protect(name=f"{prefix}_no_update", operation=pgtrigger.Update),
        *never_removed(prefix),
    ]


def never_removed(prefix: str) -> list[pgtrigger.Trigger]:
    """No DELETE, no TRUNCATE."""
    return [
        pgtrigger.Protect(name=f"{prefix}_no_delete", operation=pgtrigger.Delete),
        no_truncate(prefix),
    ]


def _func(text: str) -> pgtrigger.Func:
    """The body of a trigger."""
    return pgtrigger.Func(text)  # type: ignore[no-untyped-call]


def no_update_when(name: str, condition: str) -> pgtrigger.Trigger:
    """Refuse an UPDATE of a row for which `condition`, over OLD and NEW, holds."""
    return pgtrigger.Protect(
        name=name,
        operation=pgtrigger.Update,
        condition=pgtrigger.Condition(condition),
    )


def moves_only(name: str, changes: Iterable[tuple[str, str]]) -> pgtrigger.Trigger:
    """A status changes as the transition table says. A condition: a change that is let through
    calls no function."""
    allowed = ", ".join(f"('{start}', '{end}')" for start, end in changes)
    return no_update_when(
        name,
        f'NEW."status" <> OLD."status" AND (OLD."status", NEW."status") NOT IN ({allowed})',
    )


#: What of an operation says only when to look or send next.
_PLAN = "ARRAY['lookups_made', 'next_check_at', 'next_send_at']"


def flags_go_by_people() -> pgtrigger.Trigger:
    """A flag leaves an operation only after a person has cleared every fact that raised it."""
    return pgtrigger.Trigger(
        name="operation_flags_go_by_people",
        when=pgtrigger.Before,
        operation=pgtrigger.Update,
        condition=pgtrigger.Condition('NOT (OLD."attention" <@ NEW."attention")'),
        func=_func(
            """
            IF EXISTS (
                SELECT 1 FROM operations_flag AS standing
                WHERE standing.operation_id = NEW.id
                  AND standing.cleared_at IS NULL
                  AND standing.attention <> ALL (NEW.attention)
            ) THEN
                RAISE EXCEPTION 'Operation % has a flag that nobody cleared.', NEW.id;
            END IF;
            RETURN NEW;
            """
        ),
    )


def only_forward() -> list[pgtrigger.Trigger]:
    """What of an operation only ever goes one way.

    Every change raises the revision, so that no page and no job acts on a view that is not the
    last one; only when to look or send next may change without. The key's window is promised
    from the first send and is never stretched.
    """
    return [
        no_update_when(
            "operation_revision_counts",
            'NEW."revision" <> OLD."revision" + 1 AND ('
            'NEW."revision" <> OLD."revision"'
            f" OR (to_jsonb(NEW.*) - {_PLAN}) <> (to_jsonb(OLD.*) - {_PLAN}))",
        ),
        no_update_when(
            "operation_counts_kept",
            'NEW."attempts_made" < OLD."attempts_made" OR NEW."lookups_made" < OLD."lookups_made"',
        ),
        no_update_when(
            "operation_first_send_kept",
            'OLD."first_sent_at" IS NOT NULL'
            ' AND NEW."first_sent_at" IS DISTINCT FROM OLD."first_sent_at"',
        ),
        no_update_when(
            "operation_key_window_kept",
            'OLD."key_window_closes_at" IS NOT NULL'
            ' AND (NEW."key_window_closes_at" IS NULL'
            ' OR NEW."key_window_closes_at" > OLD."key_window_closes_at")',
        ),
    ]


def lease_covers_the_send() -> pgtrigger.Trigger:
    """A lease stays until its attempt is finished: the sweep finds lost sends by their lease."""
    return _Always(
        name="operation_lease_covers_the_send",
        when=pgtrigger.Before,
        operation=pgtrigger.Update,
        condition=pgtrigger.Condition(
            'OLD."lease_owner" <> \'\' AND NEW."lease_owner" <> OLD."lease_owner"'
        ),
        func=_func(
            """
            IF EXISTS (
                SELECT 1 FROM operations_attempt
                WHERE operation_id = NEW.id AND outcome = ''
            ) THEN
                RAISE EXCEPTION 'Operation % has a send in flight under its lease.', NEW.id;
            END IF;
            RETURN NEW;
            """
        ),
    )


def fits_its_payment() -> pgtrigger.Trigger:
    """An operation belongs to the account of its payment and is in its currency."""
    return _Always(
        name="operation_fits_its_payment",
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        func=_func(
            """
            IF EXISTS (
                SELECT 1 FROM operations_payment AS payment
                WHERE payment.id = NEW.payment_id
                  AND (payment.account_id <> NEW.account_id
                       OR payment.currency <> NEW.currency)
            ) THEN
                RAISE EXCEPTION 'Operation % differs from its payment.', NEW.id;
            END IF;
            RETURN NEW;
            """
        ),
    )


def fits_its_operation() -> pgtrigger.Trigger:
    """An attempt is begun only as its operation allows, which this locks.

    The operation is open and leased to the sender, the attempt is its next one and carries its
    one key and its frozen body, and a repetition begins before the key's window closes.
    """
    return _Always(
        name="attempt_fits_its_operation",
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        declare=[("parent", "operations_operation%ROWTYPE")],
        func=_func(
            """
            SELECT * INTO parent FROM operations_operation
            WHERE id = NEW.operation_id FOR NO KEY UPDATE;
            IF FOUND AND (
                parent.status <> 'open'
                OR parent.lease_owner = ''
                OR parent.lease_owner <> NEW.fence
                OR parent.attempts_made <> NEW.number
                OR parent.idempotency_key <> NEW.idempotency_key
                OR parent.parameters <> NEW.parameters
                OR (NEW.number > 1 AND NEW.started_at >= parent.key_window_closes_at)
            ) THEN
                RAISE EXCEPTION 'Attempt % does not fit operation %.', NEW.number, parent.id;
            END IF;
            RETURN NEW;
            """
        ),
    )


def refund_fits_its_operation() -> pgtrigger.Trigger:
    """A refund belongs to no operation of another account, amount or currency."""
    return _Always(
        name="provider_refund_fits_its_operation",
        when=pgtrigger.Before,
        operation=pgtrigger.Insert | pgtrigger.UpdateOf("operation_id"),  # type: ignore[no-untyped-call]
        condition=pgtrigger.Condition('NEW."operation_id" IS NOT NULL'),
        func=_func(
            """
            IF EXISTS (
                SELECT 1 FROM operations_operation AS operation
                WHERE operation.id = NEW.operation_id
                  AND (operation.account_id, operation.amount, operation.currency)
                      <> (NEW.account_id, NEW.amount, NEW.currency)
            ) THEN
                RAISE EXCEPTION 'Refund % differs from its operation.', NEW.provider_object_id;
            END IF;
            RETURN NEW;
            """
        ),
    )


def fits_its_attempt() -> pgtrigger.Trigger:
    """Evidence of an attempt belongs to that attempt's operation."""
    return _Always(
        name="evidence_fits_its_attempt",
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        condition=pgtrigger.Condition('NEW."attempt_id" IS NOT NULL'),
        func=_func(
            """
            IF EXISTS (
                SELECT 1 FROM operations_attempt AS attempt
                WHERE attempt.id = NEW.attempt_id
                  AND attempt.operation_id <> NEW.operation_id
            ) THEN
                RAISE EXCEPTION 'This attempt is another operation''s.';
            END IF;
            RETURN NEW;
            """
        ),
    )


def follows_the_last(*, system_chain: str, chain_start: str) -> pgtrigger.Trigger:
    """An audit entry goes on from the last one of its operation's chain, without a gap."""
    return _Always(
        name="audit_follows_the_last",
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        func=_func(
            f"""
            IF NEW.chain <> COALESCE(NEW.operation_id::text, '{system_chain}') THEN
                RAISE EXCEPTION 'Chain % is not the one of this entry.', NEW.chain;
            END IF;
            IF NEW.previous_hash <> (CASE
                WHEN NEW.number = 1 THEN '{chain_start}'
                ELSE COALESCE((
                    SELECT last.entry_hash FROM operations_auditentry AS last
                    WHERE last.chain = NEW.chain AND last.number = NEW.number - 1
                ), '')
            END) THEN
                RAISE EXCEPTION 'Entry % does not follow in chain %.', NEW.number, NEW.chain;
            END IF;
            RETURN NEW;
            """  # noqa: S608 - both are constants
        ),
    )


def kept_for_a_day(prefix: str) -> list[pgtrigger.Trigger]:
    """No UPDATE, no TRUNCATE, and no DELETE before a row is a day old.

    A token must outlive the key under which its refund was sent.
    """
    return [
        pgtrigger.Protect(name=f"{prefix}_no_update", operation=pgtrigger.Update),
        pgtrigger.Protect(
            name=f"{prefix}_no_delete",
            operation=pgtrigger.Delete,
            condition=pgtrigger.Condition("OLD.\"created_at\" > now() - interval '1 day'"),
        ),
        no_truncate(prefix),
    ]


def no_truncate(prefix: str) -> pgtrigger.Trigger:
    """No TRUNCATE."""
    return pgtrigger.Trigger(
        name=f"{prefix}_no_truncate",
        level=pgtrigger.Statement,
        when=pgtrigger.Before,
        operation=pgtrigger.Truncate,
        func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;",
    )


def only_handled_items_leave() -> pgtrigger.Trigger:
    """An item leaves the inbox only when it is written down what became of its event.

    One look at all rows of the statement, so that a batch costs little more than one.
    """
    return pgtrigger.Trigger(
        name="inbox_item_handled_before_it_leaves",
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=pgtrigger.Delete,
        referencing=pgtrigger.Referencing(old="gone"),  # type: ignore[no-untyped-call]
        func=_func(
            """
            IF EXISTS (
                SELECT 1 FROM gone WHERE NOT EXISTS (
                    SELECT 1 FROM operations_eventhandling AS handling
                    WHERE handling.provider_event_id = gone.provider_event_id
                      AND handling.event_id = gone.event_id
                )
            ) THEN
                RAISE EXCEPTION 'An item of the inbox is removed before it is handled.';
            END IF;
            RETURN NULL;
            """
        ),
    )
