"""`manage.py show_transitions`: the transition table as Markdown, for the documentation."""

from typing import Any

from django.core.management.base import BaseCommand

from operations.domain.statuses import TRANSITIONS, Fact, Status


def transition_table() -> str:
    """One row a fact, one column the status it is learned in."""
    lines = [
        f"| what is learned | {' | '.join(f'`{status}`' for status in Status)} |",
        f"| --- |{' --- |' * len(Status)}",
    ]
    lines += [
        f"| `{fact}` | {' | '.join(_cell(status, fact) for status in Status)} |" for fact in Fact
    ]
    return "\n".join(lines)


def _cell(status: Status, fact: Fact) -> str:
    step = TRANSITIONS.get((status, fact))
    if step is None:
        return "refused"
    where = "stays" if step.to is status else f"`{step.to}`"
    return f"{where}, attention `{step.attention}`" if step.attention else where


class Command(BaseCommand):
    """Prints what stands between the markers in docs/architecture.md."""

    help = "Print the transition table as Markdown."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print it."""
        self.stdout.write(transition_table())
