"""What the threat model says is tested is tested."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text()


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", TEXT)
    assert len(named) > 40
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).exists() or (name and name not in _functions(ROOT / path))
    ]
    assert missing == []


def test_every_threat_has_a_control_and_a_test() -> None:
    threats = TEXT.partition("\n## Threats\n")[2].partition("\n## ")[0]
    rows = [line for line in threats.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith(("| threat", "| ---"))]
    assert len(rows) > 30
    assert [row for row in rows if row.count(" | ") != 2 or "`tests/" not in row] == []


def test_every_chapter_of_the_standard_is_spoken_of() -> None:
    chapters = re.findall(r"^\| V(\d+) ", TEXT, re.MULTILINE)
    assert [int(number) for number in chapters] == list(range(1, 18))


def _functions(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
