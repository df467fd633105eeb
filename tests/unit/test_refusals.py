"""What people are told when something can't be done: whole sentences, in every language."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from django.utils.translation import override

from operations.console.saying import in_words
from operations.domain.money import Money
from operations.domain.sentences import Outside, Refusal, say
from reconcile import catalogue

_TOLD = [
    *(catalogue.ROOT / "operations/services").rglob("*.py"),
    *(catalogue.ROOT / "operations/queries").rglob("*.py"),
    *(catalogue.ROOT / "operations/domain").rglob("*.py"),
]
#: A text that is nothing but a place.
_PLACE = re.compile(r"\{\w+\}")


def test_every_refusal_of_a_service_is_a_sentence() -> None:
    bare = [
        f"{path.name}:{node.lineno}"
        for path in _TOLD
        for node, name in _raised(path)
        if name in _refusals() and isinstance(node.args[0], ast.Constant | ast.JoinedStr)
    ]
    assert bare == []
    assert len(_refusals()) > 15


def test_every_sentence_is_in_the_german_catalogue() -> None:
    known = {
        str(row.id)
        for row in catalogue._messages(catalogue._read("de"))
        if catalogue._is_full(row) and not row.fuzzy
    }
    lacking = sorted(text for path in _TOLD for text in _said(path) if text not in known)
    assert lacking == []


def test_a_refusal_speaks_the_readers_language_with_its_values() -> None:
    refusal = Refusal(say("The provider has no refund {refund} in this account.", refund="re_1"))
    assert str(refusal) == "The provider has no refund re_1 in this account."
    with override("de"):
        assert (
            in_words(refusal.sentence) == "Der Anbieter hat in diesem Konto keine Erstattung re_1."
        )


def test_a_sentence_holds_others() -> None:
    amount = say(
        "Amount: we sent {sent}, there it is {provider}",
        sent=Money(3_800, "usd"),
        provider=Money(3_900, "usd"),
    )
    whole = say("It is another refund. {differences}.", differences=(amount, amount))
    assert str(whole).count("; Amount: we sent 38.00 USD, there it is 39.00 USD") == 1
    with override("de"):
        assert in_words(whole).startswith(
            "Es ist eine andere Erstattung. Betrag: wir sandten 38,00"
        )


@pytest.mark.parametrize("text", ["\u202eevil", "a\u2069\u202eb"])
def test_text_from_outside_keeps_its_direction_to_itself(text: str) -> None:
    words = in_words(say("{note}", note=Outside(text)))
    assert words[0] == "\u2068"
    assert words[-1] == "\u2069"
    assert "\u2069" not in words[1:-1]


def _refusals() -> set[str]:
    found: set[str] = set()
    import_module("operations.console.urls")
    waiting = [Refusal]
    while waiting:
        for child in waiting.pop().__subclasses__():
            found.add(child.__name__)
            waiting.append(child)
    return found


def _raised(path: Path) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            name = node.exc.func
            yield (
                node.exc,
                name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", ""),
            )


def _said(path: Path) -> Iterator[str]:
    """The literal texts of sentences, wherever they are made."""
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("say", "Sentence", "gettext_noop")
            and node.args
            and isinstance(node.args[0], ast.Constant)
            # A place alone has no words.
            and not _PLACE.fullmatch(str(node.args[0].value))
        ):
            yield str(node.args[0].value)
