"""`manage.py show_budget`: the worst case of calls, multiplied and capped."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from operations.domain.worst_case import Layers, worst_case
from operations.services.engine import default_engine


class Command(BaseCommand):
    """Prints how often a refund can be sent when every layer above retries."""

    help = "Print the worst case: agent by workflow by ours, and what this product caps it to."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """How often the layers above us try."""
        parser.add_argument("--agent", type=int, default=3, help="tries of the agent's own loop")
        parser.add_argument("--workflow", type=int, default=3, help="tries of its workflow engine")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print it."""
        layers = Layers(agent=options["agent"], workflow=options["workflow"])
        if layers.agent < 1 or layers.workflow < 1:
            raise CommandError("--agent and --workflow must be 1 or more.")
        engine = default_engine()
        budget = engine.budget
        found = worst_case(layers, budget)
        figures = (
            ("agent tries", layers.agent),
            ("x workflow tries", layers.workflow),
            ("= calls to us", found.calls_to_us),
            ("x attempts a call", budget.attempts_per_call),
            ("= sends if multiplied", found.multiplied),
            ("sends with this product", found.capped),
        )
        lines = (
            "One wish, every layer failing every time:",
            *(f"  {label:<24}{number:>5}" for label, number in figures),
            "The attempts of an operation are one budget that all calls share, all of them sent",
            "with one idempotency key.",
            f"One call takes at most {found.seconds_per_call:g} s: no send begins that could end "
            "later.",
            f"No send begins later than {engine.key_window.window_s} s less "
            f"{engine.key_window.margin_s} s after the first one.",
        )
        for line in lines:
            self.stdout.write(line)
