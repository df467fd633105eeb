"""The rules' sentences as plain text in the reader's language."""

import re

from django import forms
from django.utils.translation import gettext

from operations.domain.money import Money
from operations.domain.sentences import Outside, Refusal, Sentence, Value
from operations.services.weighing import Overtaken
from operations.templatetags.showing import money

#: The characters that begin and end an isolated text: one too many would end ours.
_ISOLATES = re.compile("[\u2066-\u2069]")


def in_words(sentence: Sentence) -> str:
    """A sentence for a place that holds text alone, such as the words beside a field."""
    values = {name: _plain(value) for name, value in sentence.values.items()}
    text = gettext(sentence.text)
    return text.format(**values) if values else text


def show_refusal(form: forms.Form, refusal: Refusal) -> int:
    """Say in a form what could not be done: beside the field to mend, or above all of them.

    The status to answer with: 409 when somebody else was faster, else 422.
    """
    field = refusal.field if refusal.field in form.fields else None
    form.add_error(field, in_words(refusal.sentence))
    return 409 if isinstance(refusal, Overtaken) else 422


def isolated(text: str) -> str:
    """Text from outside, for a place without markup: it can't turn the words around it."""
    return text if text.isascii() else f"\u2068{_ISOLATES.sub('', text)}\u2069"


def _plain(value: Value) -> str:
    match value:
        case Money():
            return money(value)
        case Outside(text):
            return isolated(text)
        case Sentence():
            return in_words(value)
        case tuple():
            return "; ".join(in_words(part) for part in value)
        case _:
            return str(value)
