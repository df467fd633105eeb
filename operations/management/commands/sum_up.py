"""`manage.py sum_up`: bring the counts behind the insights up to date, or make all of them anew."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from operations.services.engine import default_engine
from operations.services.summing import mark_changed_hours, mark_every_hour, sum_next_hour


class Command(BaseCommand):
    """Counts until nothing is left to count."""

    help = "Count what happened in each hour, for the insights. A job does it once a minute, too."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which hours."""
        parser.add_argument("--rebuild", action="store_true", help="count every hour anew")

    def handle(self, *args: Any, **options: Any) -> None:
        """Count, and say how many hours."""
        if options["rebuild"]:
            mark_every_hour()
        else:
            mark_changed_hours(engine=default_engine())
        hours = 0
        while sum_next_hour():
            hours += 1
        self.stdout.write(f"Hours counted: {hours}")
