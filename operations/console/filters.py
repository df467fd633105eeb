"""The queue's filters; all of them live in the address."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import django_filters
from django import forms
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from operations.console import wording
from operations.console.saying import in_words
from operations.domain.money import CURRENCIES
from operations.domain.sentences import Sentence
from operations.domain.typed_amounts import typed_amount
from operations.models import Operation
from operations.queries.choices import Choices
from operations.queries.narrowing import Narrow

AGES: dict[str, tuple[timedelta, Promise]] = {
    "15m": (timedelta(minutes=15), _("Over 15 m")),
    "1h": (timedelta(hours=1), _("Over 1 h")),
    "4h": (timedelta(hours=4), _("Over 4 h")),
    "24h": (timedelta(hours=24), _("Over 24 h")),
    "7d": (timedelta(days=7), _("Over 7 d")),
}
#: What an address says of a list. `view` and `sort` narrow nothing.
NAMES = (
    "status",
    "reason",
    "attention",
    "account",
    "currency",
    "min",
    "max",
    "age",
    "claimed",
    "agent",
    "order",
)


class _NarrowForm(forms.Form):
    """An amount means something in a currency only."""

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        currency = str(cleaned.get("currency") or "").lower()
        if currency and currency not in CURRENCIES:
            self.add_error("currency", gettext("There is no such currency."))
            return cleaned
        for name in ("min", "max"):
            text = cleaned.get(name)
            if not text:
                continue
            if not currency:
                self.add_error(name, gettext("Name the currency of the amount."))
                continue
            typed = typed_amount(text, currency)
            if isinstance(typed, Sentence):
                self.add_error(name, in_words(typed))
        return cleaned


class QueueFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Reads the filters. A value that means nothing is named as an error and filters nothing."""

    status = django_filters.ChoiceFilter(
        label=_("Status"), choices=list(wording.STATUS.items()), empty_label=_("Any")
    )
    reason = django_filters.ChoiceFilter(
        label=_("Reason"), choices=list(wording.REASON.items()), empty_label=_("Any")
    )
    attention = django_filters.ChoiceFilter(
        label=_("Flag"), choices=list(wording.ATTENTION.items()), empty_label=_("Any")
    )
    account = django_filters.ChoiceFilter(label=_("Account"), empty_label=_("All"))
    currency = django_filters.CharFilter(label=_("Currency"), max_length=3)
    min = django_filters.CharFilter(label=_("Amount from"), max_length=20)
    max = django_filters.CharFilter(label=_("Amount to"), max_length=20)
    age = django_filters.ChoiceFilter(
        label=_("Age"),
        choices=[(name, words) for name, (_span, words) in AGES.items()],
        empty_label=_("Any"),
    )
    claimed = django_filters.ChoiceFilter(label=_("Claimed by"), empty_label=_("Anyone or nobody"))
    agent = django_filters.ChoiceFilter(label=_("Agent"), empty_label=_("Any"))
    order = django_filters.CharFilter(label=_("Order"), max_length=255)

    class Meta:
        model = Operation
        fields: tuple[str, ...] = ()
        form = _NarrowForm

    def __init__(self, data: QueryDict, *, choices: Choices, person: str) -> None:
        super().__init__(data, queryset=Operation.objects.none())
        offered = _offered(choices, person)
        for name, rows in offered.items():
            self.form.fields[name].choices = [("", ""), *rows]

    @property
    def understood(self) -> dict[str, str]:
        """The filters that are set and mean something, as the address has them."""
        self.form.is_valid()
        wrong = self.form.errors
        return {
            name: str(value)
            for name, value in self.form.cleaned_data.items()
            if value and name not in wrong
        }


class Reading(NamedTuple):
    """What an address says of filters: those that mean something, and the errors of the others."""

    understood: Mapping[str, str]
    errors: Mapping[str, str]


def read_filters(data: QueryDict, *, choices: Choices, person: str) -> Reading:
    """Read the filters of an address."""
    if not any(data.get(name) for name in NAMES):
        return Reading({}, {})
    filters = QueueFilter(data, choices=choices, person=person)
    understood = filters.understood
    errors = {name: str(every[0]) for name, every in filters.form.errors.items()}
    return Reading(understood, errors)


class Field(NamedTuple):
    """One filter as it is drawn: a choice when it has options (as HTML), else a text."""

    name: str
    label: str | Promise
    value: str
    options: SafeString | None
    is_set: bool
    most: int
    error: str


def fields_of(
    data: QueryDict, reading: Reading, *, choices: Choices, person: str
) -> Iterator[Field]:
    """The filters as the page draws them, with what was typed in them."""
    language = get_language() or ""
    offered = _offered(choices, person)
    for name, one in QueueFilter.base_filters.items():
        value = data.get(name, "")[:255]
        options = None
        if isinstance(one, django_filters.ChoiceFilter):
            rows = offered[name] if name in offered else one.extra["choices"]
            every = (("", one.extra["empty_label"]), *rows)
            options = _options(language, tuple(every), value)
        yield Field(
            name=name,
            label=one.label,
            value=value,
            options=options,
            is_set=name in reading.understood,
            most=one.extra.get("max_length", 0),
            error=reading.errors.get(name, ""),
        )


@lru_cache(maxsize=200)
def _options(
    language: str, every: tuple[tuple[str, str | Promise], ...], chosen: str
) -> SafeString:
    """The same few lists on every page: drawn once a language."""
    return format_html_join(
        "",
        '<option value="{}"{}>{}</option>',
        (
            (value, mark_safe(" selected") if str(value) == chosen else "", words)
            for value, words in every
        ),
    )


def _offered(choices: Choices, person: str) -> Mapping[str, list[tuple[str, str | Promise]]]:
    return {
        "account": list(choices.accounts),
        "agent": list(choices.agents),
        "claimed": [
            ("me", _("Me")),
            ("nobody", _("Nobody")),
            ("anybody", _("Anybody")),
            *((value, name) for value, name in choices.holders if value != person),
        ],
    }


def narrow_of(understood: Mapping[str, str], person: str) -> Narrow:
    """The filters of an address, whose values were understood. `me` is this person."""
    currency = understood.get("currency", "").lower()
    claimed = understood.get("claimed", "")
    age = AGES.get(understood.get("age", ""))
    return Narrow(
        status=understood.get("status", ""),
        reason=understood.get("reason", ""),
        attention=understood.get("attention", ""),
        account=_number(understood, "account"),
        currency=currency,
        least=_amount(understood, "min", currency),
        most=_amount(understood, "max", currency),
        older_than=age[0] if age else None,
        claimed=person if claimed == "me" else claimed,
        agent=_number(understood, "agent"),
        order=understood.get("order", ""),
    )


@lru_cache(maxsize=1_000)
def kept_query(query: str) -> Mapping[str, str]:
    """The names and values of a saved query, which was understood when it was saved."""
    return QueryDict(query).dict()


def _number(understood: Mapping[str, str], name: str) -> int | None:
    text = understood.get(name, "")
    return int(text) if text.isdigit() else None


def _amount(understood: Mapping[str, str], name: str, currency: str) -> int | None:
    text = understood.get(name, "")
    typed = typed_amount(text, currency) if text and currency else None
    return typed if isinstance(typed, int) else None
