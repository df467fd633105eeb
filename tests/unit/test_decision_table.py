"""The table of decisions in the documentation is what the rules decide."""

from io import StringIO
from pathlib import Path

from django.core.management import call_command

DOCS = Path(__file__).parents[2] / "docs" / "decision-table.md"


def printed() -> str:
    """What the command prints."""
    out = StringIO()
    call_command("show_decisions", stdout=out)
    return out.getvalue().strip()


def test_documentation_shows_the_decisions_of_the_rules() -> None:
    _before, begins, rest = DOCS.read_text().partition("<!-- decisions:begin -->")
    shown, ends, _after = rest.partition("<!-- decisions:end -->")
    assert (begins, ends) != ("", "")
    assert shown.strip() == printed(), "Run `manage.py show_decisions`, paste it."


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_row_has_as_many_cells_as_its_table() -> None:
    width = 0
    for line in printed().splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        width = width or len(cells(line))
        assert len(cells(line)) == width
        assert all(cells(line))


def test_no_decision_says_failed_when_an_earlier_answer_was_lost_and_nothing_proves_it() -> None:
    rows = [cells(line) for line in printed().splitlines() if line.startswith("| ")]
    answers = [row for row in rows if len(row) == 5][2:]
    assert len(answers) > 15
    failed = {row[0] for row in answers if row[3] == "`failed`"}
    assert failed == {"200, the refund, `failed`", "a refusal, marked as a replay"}
