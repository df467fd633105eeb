"""Checks what is installed to run: under which licences, and with which known vulnerabilities.

`python -m reconcile.dependencies` is a part of `make check`. The advisories come from the package
index; where it has none to give, that is said and is no failure.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

ROOT = Path(__file__).parents[1]
PINNED = ROOT / "requirements" / "base.txt"

#: Licences whose terms would reach from a dependency to this product. The lesser one (LGPL, that of
#: psycopg) does not: a library under it is used as it is.
_REACHING = re.compile(r"(?<!L)GPL|Affero|(?<!Lesser )General Public License", re.IGNORECASE)
_LONGEST_NAME = 200
_WAIT_S = 300


@dataclass(frozen=True)
class Audit:
    """What the advisories say: a sentence for each vulnerability, and who was not asked of."""

    found: Sequence[str]
    asked: Sequence[str]
    not_asked: Sequence[str]


def main() -> int:
    """Say what was found; 1 when something has to be done."""
    names = list(pinned(PINNED.read_text()))
    wrong = [text for name in names if (text := licence_problem(name, licence_of(name)))]
    for text in wrong:
        _say(text)
    if not wrong:
        _say(f"Licences: {len(names)} packages, none of them under the GPL.")
    try:
        audit = read_audit(_ask_for_advisories())
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        reason = str(error).strip().splitlines()
        _say("NOT CHECKED for vulnerabilities: the advisories could not be asked for.")
        _say(f"  {reason[-1] if reason else type(error).__name__}")
        return 1 if wrong else 0
    for text in audit.found:
        _say(text)
    if audit.not_asked:
        which = ", ".join(audit.not_asked) if audit.asked else "any of them"
        _say(f"NOT CHECKED for vulnerabilities ({len(audit.not_asked)} of {len(names)} packages):")
        _say(f"  the index has no advisories for {which}.")
    if audit.asked:
        _say(f"Vulnerabilities: {len(audit.found)} in {len(audit.asked)} packages.")
    return 1 if wrong or audit.found else 0


def pinned(text: str) -> Iterator[str]:
    """The names of the packages that a file of requirements installs here."""
    for line in text.splitlines():
        try:
            wanted = Requirement(line.rstrip(" \\"))
        except InvalidRequirement:
            continue  # A hash of the one before.
        if wanted.marker is None or wanted.marker.evaluate():
            yield wanted.name


def licence_of(name: str) -> str:
    """What a package says of its licence, "" when it says nothing or is not there."""
    try:
        said: Any = metadata(name)
    except PackageNotFoundError:
        return ""
    text = said.get("License-Expression") or ""
    if not text:
        kinds = [
            kind.rpartition(" :: ")[2]
            for kind in said.get_all("Classifier") or []
            if kind.startswith("License ::")
        ]
        text = " OR ".join(kinds) or (said.get("License") or "").strip()
    # Some give the whole text; it begins with its name.
    return text[:_LONGEST_NAME]


def licence_problem(name: str, licence: str) -> str:
    """Why a package can't be used under this licence; "" when it can."""
    if not licence:
        return f"{name} is not installed, or does not say under which licence it is."
    if all(_REACHING.search(choice) for choice in re.split(r"\bOR\b", licence)):
        return f"{name} is under {licence}, which this product can't be used with."
    if any(_REACHING.search(part) for part in re.split(r"\bAND\b", licence) if "OR" not in part):
        return f"{name} is in part under {licence}, which this product can't be used with."
    return ""


def read_audit(report: Mapping[str, object]) -> Audit:
    """What pip-audit found. Raises ValueError for a report that is none."""
    rows = report.get("dependencies")
    if not isinstance(rows, list):
        raise ValueError("pip-audit gave no report.")
    found = [
        f"{row['name']} {row['version']} has {bug['id']}; mended in "
        f"{', '.join(bug.get('fix_versions') or []) or 'no version yet'}."
        for row in rows
        for bug in row.get("vulns") or []
    ]
    not_asked = [row["name"] for row in rows if "skip_reason" in row]
    asked = [row["name"] for row in rows if "skip_reason" not in row]
    return Audit(found=found, asked=asked, not_asked=not_asked)


def _ask_for_advisories() -> Mapping[str, object]:
    done = subprocess.run(  # noqa: S603 - a command of our own
        [
            *(sys.executable, "-m", "pip_audit", "--requirement", str(PINNED), "--require-hashes"),
            *("--disable-pip", "--progress-spinner", "off", "--format", "json"),
        ],
        capture_output=True,
        text=True,
        timeout=_WAIT_S,
        check=False,
    )
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise OSError(done.stderr) from None
    if not isinstance(report, dict):
        raise ValueError("pip-audit gave no report.")
    return report


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
