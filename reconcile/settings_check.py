"""Settings for `make check` only: adds the command that lints migrations."""

from reconcile.settings import *  # noqa: F403
from reconcile.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "django_migration_linter"]
MIGRATION_LINTER_OPTIONS = {
    "include_apps": ["operations"],
    "no_cache": True,
    "sql_analyser": "postgresql",
    # Before the first release nobody runs the app on the schema before it.
    "ignore_name": [
        "0003_refund_reports",
        "0004_indexes",
        "0006_notices",
        "0008_inbox",
        "0009_guards",
        "0011_report_files",
        "0013_claimed",
    ],
}
