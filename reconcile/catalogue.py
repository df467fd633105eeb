"""The catalogues of translations: collected from the code, checked, and compiled.

`python -m reconcile.catalogue` writes `locale/*/LC_MESSAGES/django.po` and `.mo` anew;
with `--check` it changes nothing and exits 1, naming each text that has no translation.
English is the language of the code itself and needs no catalogue.
"""

import io
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_python
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = ("de",)
Places = tuple[int | tuple[int, str], ...]
#: What marks a text, and which of its arguments are texts ("c": the context).
MARKS: dict[str, Places] = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop"), (1,)),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (1, 2)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), ((1, "c"), 2)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), ((1, "c"), 2, 3)),
}
#: A sentence, which whoever shows it translates.
SENTENCE_MARKS: dict[str, Places] = {**MARKS, "say": (1,)}
#: The words of the rules, which know no framework.
RULE_MARKS: dict[str, Places] = {"gettext_noop": (1,), "say": (1,), "Advice": (2,)}
_PLACES = re.compile(r"%\((\w+)\)[sd]|\{(\w+)\}")


def collect() -> Catalog:
    """Every text of the code and the templates, with the files that it stands in."""
    found = Catalog(fuzzy=False)
    for path, source in _sources():
        marks = _marks_in(path)
        for _, name, texts, _ in extract_python(io.BytesIO(source), dict(marks), [], {}):
            key, context = _key(marks[str(name)], texts)
            if key and all(key if isinstance(key, tuple) else (key,)):
                found.add(key, locations=[(path, 0)], context=context)
    return found


def _marks_in(path: str) -> dict[str, Places]:
    if path.startswith("operations/domain/"):
        return RULE_MARKS
    # The demo and the local stack tell their story in the terminal, in English.
    told = path.startswith("operations/") and not path.startswith("operations/demo/")
    return SENTENCE_MARKS if told else MARKS


def problems(language: str, wanted: Catalog) -> Iterator[str]:
    """What keeps a language from being complete, a sentence each."""
    folder = _folder(language)
    try:
        kept = _read(language)
    except FileNotFoundError:
        yield f"{folder / 'django.po'} is missing."
        return
    for message in _messages(wanted):
        text = message.id if isinstance(message.id, str) else message.id[0]
        there = kept.get(message.id, message.context)
        if there is None or not _is_full(there):
            yield f"Not translated into {language}: {text!r}"
        elif there.fuzzy:
            yield f"Marked as fuzzy in {language}: {text!r}"
        elif not _places_agree(there):
            yield f"Other places in {language}: {text!r}"
    for message in _messages(kept):
        if wanted.get(message.id, message.context) is None:
            yield f"No longer used, but in {language}: {message.id!r}"
    compiled = folder / "django.mo"
    if not compiled.exists() or compiled.read_bytes() != _compiled(kept):
        yield f"{compiled} does not fit its .po: run `make messages`."


def write(language: str, wanted: Catalog) -> None:
    """Bring a language's files up to date. What is no longer used leaves."""
    folder = _folder(language)
    folder.mkdir(parents=True, exist_ok=True)
    fresh = Catalog(locale=language, fuzzy=False, header_comment="", charset="utf-8")
    try:
        kept = _read(language)
    except FileNotFoundError:
        kept = Catalog(locale=language)
    for message in _messages(wanted):
        there = kept.get(message.id, message.context)
        fresh.add(
            message.id,
            there.string if there is not None else "",
            locations=message.locations,
            context=message.context,
            flags=there.flags - {"python-format", "python-brace-format"} if there else (),
        )
    (folder / "django.po").write_bytes(_written(fresh))
    (folder / "django.mo").write_bytes(_compiled(_read(language)))


def main(arguments: list[str]) -> int:
    """Write the catalogues, or with `--check` say what they lack."""
    wanted = collect()
    if arguments == ["--check"]:
        lacking = [line for language in LANGUAGES for line in problems(language, wanted)]
        sys.stderr.writelines(f"{line}\n" for line in lacking)
        return 1 if lacking else 0
    for language in LANGUAGES:
        write(language, wanted)
    return 0


def _sources() -> Iterator[tuple[str, bytes]]:
    for folder, pattern in (("operations", "*.py"), ("reconcile", "*.py"), ("templates", "*.html")):
        for path in sorted((ROOT / folder).rglob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            if "/migrations/" in name or "/sandbox/" in name:
                continue
            text = path.read_text()
            if path.suffix == ".html":
                # Calls between words, as the extractor needs them: without indentation.
                text = "\n".join(line.strip() for line in templatize(text).splitlines())
            yield name, text.encode()


def _key(marks: Places, texts: object) -> tuple[str | tuple[str, ...] | None, str | None]:
    """The text, or the text of one and of many, and its context."""
    parts = texts if isinstance(texts, tuple) else (texts,)
    chosen: list[str] = []
    context = None
    for mark in marks:
        place = mark if isinstance(mark, int) else mark[0]
        part = parts[place - 1] if place <= len(parts) else None
        if not isinstance(part, str):
            return None, None
        if isinstance(mark, int):
            chosen.append(part)
        else:
            context = part
    return (chosen[0] if len(chosen) == 1 else tuple(chosen)), context


def _messages(catalog: Catalog) -> list[Message]:
    """All but the header, in the order of their texts: no change moves its neighbours."""
    return sorted((row for row in catalog if row.id), key=lambda row: (str(row.id), row.context))


def _is_full(message: Message) -> bool:
    texts = message.string if isinstance(message.string, tuple | list) else (message.string,)
    return bool(texts) and all(texts)


def _places_agree(message: Message) -> bool:
    """Whether every translated form names the places of its original, and no other."""
    ids = message.id if isinstance(message.id, tuple | list) else (message.id,)
    strings = message.string if isinstance(message.string, tuple | list) else (message.string,)
    texts = [text or "" for text in strings]
    if len(ids) == 1:
        return _places(texts[0]) == _places(ids[0])
    # The form for one may leave the number out.
    return all(_places(text) <= _places(ids[-1]) for text in texts) and _places(
        texts[-1]
    ) == _places(ids[-1])


def _places(text: str) -> set[str]:
    return {one or other for one, other in _PLACES.findall(text)}


def _read(language: str) -> Catalog:
    with (_folder(language) / "django.po").open("rb") as file:
        return read_po(file, locale=language)


def _written(catalog: Catalog) -> bytes:
    """The catalogue without a date or a line number, which would change with every edit."""
    out = io.BytesIO()
    write_po(out, catalog, width=100, omit_header=True, include_lineno=False, sort_output=True)
    forms = f"nplurals={catalog.num_plurals}; plural={catalog.plural_expr};"
    head = (
        'msgid ""\nmsgstr ""\n"MIME-Version: 1.0\\n"\n'
        '"Content-Type: text/plain; charset=utf-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n'
        f'"Language: {catalog.locale}\\n"\n"Plural-Forms: {forms}\\n"\n\n'
    )
    return head.encode() + out.getvalue().strip() + b"\n"


def _compiled(catalog: Catalog) -> bytes:
    """The bytes that gettext reads, the same for the same catalogue."""
    plain = Catalog(locale=catalog.locale, fuzzy=False, charset="utf-8")
    plain.mime_headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Plural-Forms", f"nplurals={catalog.num_plurals}; plural={catalog.plural_expr};"),
    ]
    # A catalogue says when it was made, to the minute; that would be another file every minute.
    plain.creation_date = plain.revision_date = datetime(2026, 1, 1, tzinfo=UTC)
    for message in _messages(catalog):
        if _is_full(message) and not message.fuzzy:
            plain.add(message.id, message.string, context=message.context)
    out = io.BytesIO()
    write_mo(out, plain)
    return out.getvalue()


def _folder(language: str) -> Path:
    return ROOT / "locale" / language / "LC_MESSAGES"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
