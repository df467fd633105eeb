"""No sentence of a page is put together from pieces: another language has another order."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconcile.catalogue import ROOT

_TOKEN = re.compile(
    r"(?P<comment>\{#.*?#\}|\{% comment %\}.*?\{% endcomment %\}|<!--.*?-->)"
    r"|(?P<whole>\{% blocktrans(?:late)?\b.*?\{% endblocktrans(?:late)? %\})"
    r"|(?P<tag>\{%-?\s*(?P<name>\w+).*?%\})|(?P<value>\{\{.*?\}\})|(?P<markup><[^>]*>)",
    re.DOTALL,
)
#: What a reader reads as part of the line that it stands in.
_INLINE = re.compile(r"</?(span|a|strong|em|b|bdi|code|time|kbd)\b")
#: What shows something between the words of a sentence.
_SHOWS = {"outside", "moment", "ago", "say", "amount", "ident", "now_in_words"}
#: What is a box of its own, although it stands in the line.
_BOX = re.compile(
    r'% icon |class="(sub|sr|count|choice__body|choice__title|field__hint|btn)'
    r"|</span>\s*\n[^<]*<span"
)
_STOP = re.compile(r"""CLOSED_AS|[.?!]["']?\s*(%\}|\{% endblocktranslate %\})?\s*$""")
#: One after the other, and never side by side.
_ELSE = {"else", "elif", "empty", "plural", "block", "endblock", "for", "endfor", "cycle"}


def _glued(template: str) -> Iterator[str]:
    """Where a translated text stands beside another, or beside a value, in one line of text."""
    before, words, start, place = "", "", 0, 0
    for found in _TOKEN.finditer(template):
        between = found.string[place : found.start()]
        place = found.end()
        kind = _kind(found)
        if re.search(r"[^\s.,;:()→·…-]", between) and not found["comment"]:
            # Words that no catalogue knows, or a sign that stands alone.
            before = ""
        if kind == "ends":
            before = ""
        elif kind in ("text", "value"):
            gap = found.string[start : found.start()]
            if before and "text" in (before, kind) and _is_one_line(words, gap):
                yield found.string[max(0, start - 60) : found.end() + 20]
            before, words, start = kind, found.group(), found.end()


def _kind(found: re.Match[str]) -> str:
    if found["whole"]:
        return "text"
    if found["value"]:
        return "value"
    name = found["name"]
    if name in ("translate", "trans"):
        return "" if " as " in found["tag"] else "text"
    if name in _SHOWS:
        return "" if " as " in found["tag"] else "value"
    if name and name in _ELSE:
        return "ends"
    if found["markup"] and not _INLINE.match(found["markup"]):
        return "ends"
    return ""


def _is_one_line(before: str, gap: str) -> bool:
    """Whether both are read as one sentence: no stop, picture or box is between them."""
    words = re.sub(r"\{%.*?%\}|<[^>]*>", "", gap)
    return not (
        _BOX.search(gap)
        or ("</a>" in gap and "<a" in gap)
        or "</button>" in gap
        or "\N{MIDDLE DOT}" in words
        or (words == "" and "<" in gap)
        or _STOP.search(before)
        or _STOP.search(words)
    )


@pytest.mark.parametrize(
    "template",
    sorted((ROOT / "templates").rglob("*.html")),
    ids=lambda path: path.relative_to(ROOT / "templates").as_posix(),
)
def test_no_sentence_of_a_page_is_glued(template: Path) -> None:
    assert list(_glued(template.read_text())) == []
