"""Who may import whom, and where a status is written."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "operations"
WRITERS = {"update", "filter_update", "change", "_write", "bulk_update", "update_or_create"}


def _modules() -> list[Path]:
    skipped = {"migrations", "sandbox"}
    return [
        path
        for path in sorted(OPERATIONS.rglob("*.py"))
        if not skipped & set(path.relative_to(OPERATIONS).parts)
    ]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{item.name}" for item in node.names)


def _status_writes(tree: ast.AST) -> Iterator[ast.AST]:
    """Assignments to `.status`, and `status=` in a call that writes rows or makes an Operation."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and target.attr == "status":
                    yield node
        if isinstance(node, ast.Call) and any(word.arg == "status" for word in node.keywords):
            called = node.func
            if isinstance(called, ast.Attribute) and called.attr in WRITERS:
                yield node
            if isinstance(called, ast.Name) and called.id == "Operation":
                yield node
        if isinstance(node, ast.Call) and _is_setattr_of_status(node):
            yield node


def _is_setattr_of_status(node: ast.Call) -> bool:
    return (
        isinstance(node.func, ast.Name)
        and node.func.id == "setattr"
        and len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
        and node.args[1].value == "status"
    )


#: A refund at the provider has a status too, and keeps the furthest that was reported.
REFUNDS_OWN = {("operations/services/seeing.py", "row.status")}


# The rules know no rows; one of their errors has a status.
@pytest.mark.parametrize(
    "path", [path for path in _modules() if path.parent.name != "domain"], ids=_name
)
def test_a_status_is_written_in_one_place(path: Path) -> None:
    if path == OPERATIONS / "models" / "operation.py":
        return
    written = [
        ast.unparse(node)
        for node in _status_writes(ast.parse(path.read_text()))
        if not (
            isinstance(node, ast.Assign)
            and (_name(path), ast.unparse(node.targets[0])) in REFUNDS_OWN
        )
    ]
    assert written == []


def test_the_search_for_status_writes_finds_them() -> None:
    code = (
        "operation.status = x\nrows.update(status=x)\nOperation(status=x)\n"
        "setattr(operation, 'status', x)\nrows.filter(status=x)\nTransition(status=x)\n"
    )
    assert len(list(_status_writes(ast.parse(code)))) == 4
    own = ast.parse((OPERATIONS / "models" / "operation.py").read_text())
    assert len(list(_status_writes(own))) == 1


@pytest.mark.parametrize("path", _modules(), ids=_name)
def test_only_services_reach_for_providers(path: Path) -> None:
    inside = path.relative_to(OPERATIONS).parts[0]
    if inside in ("services", "providers"):
        return
    reached = [
        name
        for name in _imports(ast.parse(path.read_text()))
        if name.startswith("operations.providers")
    ]
    assert reached == []


@pytest.mark.parametrize(
    "path", [path for path in _modules() if path.parent.name == "domain"], ids=_name
)
def test_the_rules_import_the_standard_library_and_each_other(path: Path) -> None:
    """And a writer of JSON, which knows of nothing else."""
    for name in _imports(ast.parse(path.read_text())):
        first = name.split(".")[0]
        is_pure = first in sys.stdlib_module_names or first == "orjson"
        assert is_pure or name.startswith("operations.domain"), name


def test_the_layers_hold() -> None:
    """The contracts of import-linter in pyproject.toml."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
