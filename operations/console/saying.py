"""The rules' sentences as plain text in the reader's language."""

from django.utils.translation import gettext

from operations.domain.money import Money
from operations.domain.sentences import Outside, Sentence, Value
from operations.templatetags.showing import money


def in_words(sentence: Sentence) -> str:
    """A sentence for a place that holds text alone, such as the words beside a field."""
    values = {name: _plain(value) for name, value in sentence.values.items()}
    return gettext(sentence.text).format(**values)


def _plain(value: Value) -> str:
    match value:
        case Money():
            return money(value)
        case Outside(text):
            return text
        case _:
            return str(value)
