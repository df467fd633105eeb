"""Sentences as words with named places, so that they can be translated and shown safely."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from operations.domain.money import Money


@dataclass(frozen=True, slots=True)
class Outside:
    """Text that came from outside: it is shown isolated and never becomes part of our words."""

    text: str


#: What may stand in a place. Sentences in a row are shown with semicolons between them.
Value: TypeAlias = "str | int | Outside | datetime | Money | Sentence | tuple[Sentence, ...]"


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` holds `{places}`; `values` fills them. Datetimes are in UTC."""

    text: str
    values: Mapping[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        """The sentence in English, for logs and tests."""
        if not self.values:
            return self.text
        return self.text.format(**{name: _plain(value) for name, value in self.values.items()})


def say(text: str, **values: Value) -> Sentence:
    """A sentence from its words and what fills its places."""
    return Sentence(text, values)


class Refusal(Exception):
    """Something can't be done, and nothing was changed: why, in a sentence that can be translated.

    `field` names what to mend, "" for nothing in particular. `str()` is the sentence in English.
    """

    def __init__(self, sentence: Sentence, field: str = "") -> None:
        self.sentence = sentence
        self.field = field
        super().__init__(str(sentence))


def gettext_noop(text: str) -> str:
    """Marks a text for the catalogue; whoever shows it translates it."""
    return text


def _plain(value: Value) -> str:
    match value:
        case Outside(text):
            return text
        case datetime():
            return f"{value:%H:%M:%S}"
        case Money():
            return f"{value.major()} {value.currency.upper()}"
        case tuple():
            return "; ".join(str(part) for part in value)
        case _:
            return str(value)


def as_kept(sentence: Sentence) -> dict[str, Any]:
    """The sentence as JSON holds it, for whoever shows it later in their own language."""
    return {
        "text": sentence.text,
        "values": {name: _kept(value) for name, value in sentence.values.items()},
    }


def from_kept(kept: Mapping[str, Any]) -> Sentence:
    """The sentence as it was written by `as_kept`."""
    return Sentence(kept["text"], {name: _unkept(value) for name, value in kept["values"].items()})


def _kept(value: Value) -> Any:
    match value:
        case Outside(text):
            return {"outside": text}
        case datetime():
            return {"at": value.isoformat()}
        case Money():
            return {"money": [value.amount, value.currency]}
        case Sentence():
            return as_kept(value)
        case tuple():
            return [as_kept(part) for part in value]
        case _:
            return value


def _unkept(value: Any) -> Value:
    match value:
        case {"outside": text}:
            return Outside(text)
        case {"at": text}:
            return datetime.fromisoformat(text)
        case {"money": [amount, currency]}:
            return Money(amount, currency)
        case {"text": _}:
            return from_kept(value)
        case list():
            return tuple(from_kept(part) for part in value)
        case str() | int():
            return value
        case _:
            return str(value)
