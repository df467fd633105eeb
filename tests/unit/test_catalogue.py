"""The catalogues of translations: what is collected, and what makes one incomplete."""

from pathlib import Path

import pytest
from babel.messages.catalog import Catalog

from reconcile import catalogue


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Catalog:
    """A product of one template, one view and one rule."""
    for name, text in {
        "templates/a.html": '{% load i18n %}\n  <p>{% translate "Skip" %}\n'
        "    {% blocktranslate count n=rows %}{{ n }} row{% plural %}{{ n }} rows"
        "{% endblocktranslate %}</p>",
        "operations/console/view.py": 'gettext("It is {state}.")\nsay(f"{no} text")\n',
        "operations/domain/rule.py": 'say("Seen at {at}")\nAdvice(Step.X, "Wait", "why")\n',
        "reconcile/empty.py": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(catalogue, "ROOT", tmp_path)
    return catalogue.collect()


def test_texts_are_collected_from_pages_code_and_rules(wanted: Catalog) -> None:
    assert {str(row.id) for row in wanted if row.id} == {
        "Skip",
        "('%(n)s row', '%(n)s rows')",
        "It is {state}.",
        "Seen at {at}",
        "Wait",
    }


def test_a_language_is_complete_when_nothing_lacks(wanted: Catalog, tmp_path: Path) -> None:
    assert list(catalogue.problems("de", wanted)) == [
        f"{tmp_path / 'locale/de/LC_MESSAGES/django.po'} is missing."
    ]
    catalogue.write("de", wanted)
    assert len(list(catalogue.problems("de", wanted))) == 5

    translate(tmp_path, wanted, {"It is {state}.": "Es ist {state}."})
    assert list(catalogue.problems("de", wanted)) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Not translated into de: 'It is {state}.'"),
        ("Es ist {zustand}.", "Other places in de: 'It is {state}.'"),
        ("Es ist.", "Other places in de: 'It is {state}.'"),
    ],
)
def test_what_lacks_is_named(wanted: Catalog, tmp_path: Path, text: str, problem: str) -> None:
    translate(tmp_path, wanted, {"It is {state}.": text})

    assert list(catalogue.problems("de", wanted)) == [problem]


def test_a_guess_and_what_is_left_over_are_named(wanted: Catalog, tmp_path: Path) -> None:
    translate(tmp_path, wanted, {})
    path = tmp_path / "locale/de/LC_MESSAGES/django.po"
    path.write_text(
        path.read_text().replace('msgid "Skip"', '#, fuzzy\nmsgid "Skip"')
        + '\nmsgid "Gone"\nmsgstr "Weg"\n'
    )

    said = list(catalogue.problems("de", wanted))

    assert "Marked as fuzzy in de: 'Skip'" in said
    assert "No longer used, but in de: 'Gone'" in said
    assert any(line.endswith("run `make messages`.") for line in said)


def translate(root: Path, wanted: Catalog, texts: dict[str, str]) -> None:
    """Fill the German catalogue: with itself, but for these texts."""
    catalogue.write("de", wanted)
    path = root / "locale/de/LC_MESSAGES/django.po"
    lines, msgid, plural = [], "", ""
    for line in path.read_text().splitlines():
        if line.startswith("msgid "):
            msgid = line.removeprefix("msgid ").strip('"')
        if line.startswith("msgid_plural "):
            plural = line.removeprefix("msgid_plural ").strip('"')
        if msgid and line == 'msgstr ""':
            line = f'msgstr "{texts.get(msgid, msgid)}"'
        elif line.startswith("msgstr["):
            line = line.replace('""', f'"{plural if line[7] == "1" else msgid}"')
        lines.append(line)
    path.write_text("\n".join(lines) + "\n")
    catalogue.write("de", wanted)
