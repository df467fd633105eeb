"""Triggers: what a table refuses, whoever asks and in whatever words."""

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


class Always(pgtrigger.Trigger):
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


def refund_fits_its_operation() -> pgtrigger.Trigger:
    """A refund belongs to no operation of another account, amount or currency."""
    return Always(
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
    return Always(
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
    return Always(
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


def seal_follows_the_last(*, first: str) -> pgtrigger.Trigger:
    """A seal goes on from the one before, without a gap."""
    return Always(
        name="audit_seal_follows_the_last",
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        func=_func(
            f"""
            IF NEW.previous_digest <> (CASE
                WHEN NEW.number = 1 THEN '{first}'
                ELSE COALESCE((
                    SELECT last.digest FROM operations_auditseal AS last
                    WHERE last.number = NEW.number - 1
                ), '')
            END) THEN
                RAISE EXCEPTION 'Seal % does not follow the last one.', NEW.number;
            END IF;
            RETURN NEW;
            """  # noqa: S608 - a constant
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


def run_ends_with_its_rows() -> pgtrigger.Trigger:
    """A bulk run ends when each of its rows has a result."""
    return Always(
        name="bulk_ends_with_its_rows",
        when=pgtrigger.Before,
        operation=pgtrigger.Update,
        condition=pgtrigger.Condition("NEW.\"state\" = 'ended' AND OLD.\"state\" <> 'ended'"),
        func=_func(
            """
            IF EXISTS (
                SELECT 1 FROM operations_bulkrow AS line WHERE line.run_id = NEW.id
                  AND line.result = ''
            ) THEN
                RAISE EXCEPTION 'Run % has rows without a result.', NEW.id;
            END IF;
            RETURN NEW;
            """
        ),
    )


def only_in_a_running_run() -> pgtrigger.Trigger:
    """A row gets its result while its run runs: one look for all rows of a statement."""
    return pgtrigger.Trigger(
        name="bulk_row_needs_a_running_run",
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=pgtrigger.Update,
        referencing=pgtrigger.Referencing(new="changed"),  # type: ignore[no-untyped-call]
        func=_func(
            """
            IF EXISTS (
                SELECT 1 FROM (SELECT DISTINCT run_id FROM changed) AS their
                JOIN operations_bulkrun AS run ON run.id = their.run_id
                WHERE run.state <> 'running'
            ) THEN
                RAISE EXCEPTION 'A row gets its result while its run runs.';
            END IF;
            RETURN NULL;
            """
        ),
    )


def kept_once_its_run_began() -> pgtrigger.Trigger:
    """Rows of a preview that came to nothing may go; those of a run stay."""
    return pgtrigger.Trigger(
        name="bulk_row_no_delete",
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=pgtrigger.Delete,
        referencing=pgtrigger.Referencing(old="gone"),  # type: ignore[no-untyped-call]
        func=_func(
            """
            IF EXISTS (
                SELECT 1 FROM (SELECT DISTINCT run_id FROM gone) AS their
                JOIN operations_bulkrun AS run ON run.id = their.run_id
                WHERE run.state <> 'previewed'
            ) THEN
                RAISE EXCEPTION 'Rows of a run are never removed.';
            END IF;
            RETURN NULL;
            """
        ),
    )
