"""Settings for `make check` only: adds the command that lints migrations."""

from reconcile.settings import *  # noqa: F403
from reconcile.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "django_migration_linter"]
MIGRATION_LINTER_OPTIONS = {
    "include_apps": ["operations"],
    "no_cache": True,
    "sql_analyser": "postgresql",
    # 0001: nothing stands before it, and the table that it renames and drops was made by it.
    # 0008: it puts a unique rule on proposals, of which there are few, before the first release.
    # 0010: its columns have defaults in the database, so that code before it can go on, and the
    # table of keys is small.
    # 0014: its unique rule is on a column that it adds, which is empty in every row.
    "ignore_name": ["0001_initial", "0008_deciding", "0010_access", "0014_bulk_more"],
}
