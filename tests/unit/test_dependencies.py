"""What may be installed to run."""

import pytest

from reconcile.dependencies import PINNED, licence_of, licence_problem, pinned, read_audit


def test_no_package_that_runs_is_under_the_gpl() -> None:
    names = list(pinned(PINNED.read_text()))
    assert {"django", "celery", "psycopg", "stripe"} <= set(names)
    assert [text for name in names if (text := licence_problem(name, licence_of(name)))] == []


@pytest.mark.parametrize(
    "licence",
    [
        *("GPL-3.0-only", "AGPL-3.0-or-later", "GPLv2", "GNU Affero General Public License v3"),
        *("GNU General Public License v3 (GPLv3)", "MIT AND GPL-2.0-only", ""),
        "GPL-2.0-only OR AGPL-3.0-only",
    ],
)
def test_what_reaches_this_product_is_refused(licence: str) -> None:
    assert licence_problem("package", licence)


@pytest.mark.parametrize(
    "licence",
    [
        *("MIT", "BSD-3-Clause", "LGPL-3.0-only", "MPL-2.0 AND (Apache-2.0 OR MIT)"),
        *("GPL-2.0-or-later OR MIT", "GNU Lesser General Public License v3 (LGPLv3)"),
    ],
)
def test_other_licences_are_taken(licence: str) -> None:
    assert licence_problem("package", licence) == ""


def test_a_package_that_nobody_could_be_asked_of_is_no_clean_one() -> None:
    audit = read_audit(
        {
            "dependencies": [
                {"name": "clean", "version": "1", "vulns": []},
                {"name": "hidden", "skip_reason": "not found"},
                {
                    "name": "broken",
                    "version": "2",
                    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}, {"id": "PYSEC-2"}],
                },
            ]
        }
    )
    assert audit.found == [
        "broken 2 has PYSEC-1; mended in 3.",
        "broken 2 has PYSEC-2; mended in no version yet.",
    ]
    assert (audit.asked, audit.not_asked) == (["clean", "broken"], ["hidden"])


def test_no_report_is_no_clean_report() -> None:
    with pytest.raises(ValueError, match="no report"):
        read_audit({})
