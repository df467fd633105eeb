"""Triggers that make a table, or a part of it, read-only for everybody."""

import pgtrigger


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
        pgtrigger.Trigger(
            name=f"{prefix}_no_truncate",
            level=pgtrigger.Statement,
            when=pgtrigger.Before,
            operation=pgtrigger.Truncate,
            func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;",
        ),
    ]
