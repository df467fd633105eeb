"""`manage.py show_decisions`: the table of decisions as Markdown, for the documentation."""

from typing import Any

from django.core.management.base import BaseCommand

from operations.services.decisions import decisions_as_markdown
from operations.services.engine import default_engine


class Command(BaseCommand):
    """Prints what stands between the markers in docs/decision-table.md."""

    help = "Print what is known, the next step and what to avoid, as the rules decide it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Print it."""
        self.stdout.write(decisions_as_markdown(engine=default_engine()))
