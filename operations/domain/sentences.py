"""Sentences as words with named places, so that they can be translated and shown safely."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from operations.domain.money import Money


@dataclass(frozen=True, slots=True)
class Outside:
    """Text that came from outside: it is shown isolated and never becomes part of our words."""

    text: str


Value = str | int | Outside | datetime | Money


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` holds `{places}`; `values` fills them. Datetimes are in UTC."""

    text: str
    values: Mapping[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        """The sentence in English, for logs and tests."""
        return self.text.format(**{name: _plain(value) for name, value in self.values.items()})


def say(text: str, **values: Value) -> Sentence:
    """A sentence from its words and what fills its places."""
    return Sentence(text, values)


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
        case _:
            return str(value)
