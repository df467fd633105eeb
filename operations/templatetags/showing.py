"""How values are shown: money, times, ids, sentences. Everything from outside is isolated."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache, lru_cache
from html import escape
from typing import Any, NamedTuple

from babel.core import Locale
from babel.numbers import format_currency
from django import template
from django.forms import BaseForm, BoundField
from django.template.context import Context
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext, to_locale

from operations.console import notice_wording, wording
from operations.console.deeds import DEED
from operations.domain.masking import masked, without_keys
from operations.domain.money import Money, decimals, shown_decimals
from operations.domain.orphans import Weighed
from operations.domain.sentences import Outside, Sentence, Value
from operations.models import AuditEntry, Operation, Subscription

register = template.Library()

#: A worker that has been silent for longer is said to be, in seconds.
LATE_S = 60
#: The characters that begin and end an isolated text. One too many inside of a `bdi` would end it,
#: or swallow its end, so these are written out.
_ISOLATES = re.compile("[\u2066-\u2069]")
#: The characters that set, isolate and override the direction of a text (Unicode, UAX 9).
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


#: A currency that has no sign of its own is written with its code, which needs some room.
_CODE_BESIDE_DIGITS = re.compile(r"([A-Za-z])(?=[0-9])")


@register.filter
def money(value: Money) -> str:
    """An amount as the reader's language writes it, with the digits that Stripe counts."""
    shape = _shape(value.currency, get_language() or "en")
    if shape is not None and value.amount >= 0:
        return shape.write(value.amount)
    return _by_locale(value)


def _by_locale(value: Money) -> str:
    locale, places = to_locale(get_language() or "en"), shown_decimals(value)
    text = format_currency(
        value.major(),
        value.currency.upper(),
        format=_money_pattern(locale, places),
        locale=locale,
        currency_digits=False,
    )
    return _CODE_BESIDE_DIGITS.sub("\\1\N{NO-BREAK SPACE}", text)


@cache
def _money_pattern(locale: str, places: int) -> str:
    """The locale's own pattern, with so many decimals: its digits are not Stripe's."""
    pattern = str(Locale.parse(locale).currency_formats["standard"].pattern)
    return pattern.replace("0.00", f"0.{'0' * places}" if places else "0")


class _Shape(NamedTuple):
    """How amounts of one currency are written in one language: what changes is the digits."""

    before: str
    group: str
    point: str
    places: int
    after: str

    def write(self, amount: int) -> str:
        digits = str(amount).rjust(self.places + 1, "0")
        whole = digits[: len(digits) - self.places]
        grouped = f"{int(whole):,}".replace(",", self.group)
        behind = f"{self.point}{digits[-self.places :]}" if self.places else ""
        return f"{self.before}{grouped}{behind}{self.after}"


@lru_cache(maxsize=1_000)
def _shape(currency: str, language: str) -> _Shape | None:
    """Learned from one amount, because asking the locale anew for each takes long.

    None where a language groups its digits otherwise, or not always.
    """
    places = decimals(currency)
    sample = _by_locale(Money(1_234_567 * 10**places + (89 if places else 0), currency))
    found = re.fullmatch(r"(\D*)1(\D)234(?:\2)567(?:(\D)(\d+))?(\D*)", sample)
    if found is None or len(found[4] or "") != places:
        return None
    shape = _Shape(found[1], found[2], found[3] or "", places, found[5])
    small = Money(1_234 * 10**places, currency)
    return shape if shape.write(small.amount) == _by_locale(small) else None


@register.filter
def short_id(value: object) -> str:
    """An id that fits into a line: its start and its end."""
    text = str(value)
    return text if len(text) <= 13 else f"{text[:8]}…{text[-4:]}"


@register.filter
def raw_json(value: Any) -> str:
    """JSON as people read it, without secrets. What would turn the text around is written out."""
    text = json.dumps(masked(value), indent=2, ensure_ascii=False, sort_keys=False)
    return _TURNS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@register.filter
def field(form: BaseForm, name: str) -> BoundField:
    """One field of a form by its name."""
    return form[name]


@register.filter
def initials(name: str) -> str:
    """Up to two letters for an avatar."""
    return "".join(part[0] for part in name.split()[:2]).upper()


@register.simple_tag
def outside(value: object) -> SafeString:
    """Text from outside: escaped, without keys, and its writing direction kept to itself."""
    text = without_keys(str(value))
    text = _ISOLATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return mark_safe(f'<bdi dir="auto">{escape(text)}</bdi>')  # noqa: S308 - escaped


@register.simple_tag
def amount(value: Money) -> SafeString:
    """An amount to stand inside of a sentence."""
    return format_html('<span class="money">{}</span>', money(value))


@register.simple_tag
def ident(value: object) -> SafeString:
    """An id from outside to stand inside of a sentence."""
    return format_html('<span class="id">{}</span>', outside(value))


@register.simple_tag
def operation_link(operation_id: object) -> SafeString:
    """A link to an operation to stand inside of a sentence."""
    address = reverse("operation", args=[operation_id])
    return format_html('<a class="id" href="{}">{}</a>', address, short_id(operation_id))


@register.simple_tag
def deed(entry: AuditEntry) -> SafeString:
    """What an audit entry says that somebody did, as a sentence."""
    who = format_html("<strong>{}</strong>", outside(entry.actor_name))
    words = wording.ACTION.get(entry.action) or DEED.get(entry.action)
    if words is None:
        return format_html("{}: {}", who, entry.action)
    return format_html(str(words), who=who)


@register.simple_tag
@cache
def icon(name: str, size: str = "") -> SafeString:
    """One icon of the sprite. There are few of them, and many on a page."""
    return format_html(
        '<svg class="icon{}" aria-hidden="true"><use href="#i-{}"/></svg>',
        f" icon--{size}" if size else "",
        name,
    )


@register.simple_tag(takes_context=True)
def moment(context: Context, at: datetime, exact: str = "") -> SafeString:
    """A time in the reader's zone, UTC beside it; with the date when it is not today."""
    return _moment(at, context["now"], exact=bool(exact))


@register.simple_tag(takes_context=True)
def ago(context: Context, since: datetime) -> SafeString:
    """How long it has been."""
    span = context["now"] - since
    seconds = max(0, int(span.total_seconds()))
    return mark_safe(f'<time datetime="PT{seconds}S">{wording.duration(span)}</time>')  # noqa: S308


@register.filter
def since(at: datetime, now: datetime) -> SafeString:
    """How long it has been, for a sentence."""
    return format_html("<time>{}</time>", wording.duration(now - at))


@register.filter
def is_late(at: datetime, now: datetime) -> bool:
    """Whether a sign of life that comes every few seconds has not come for a minute."""
    return (now - at).total_seconds() > LATE_S


@register.simple_tag(takes_context=True)
def now_in_words(context: Context) -> str:
    """The time at which this page was made."""
    return wording.clock(context["now"], context["now"])


@register.simple_tag(takes_context=True)
def say(context: Context, sentence: Sentence | str) -> SafeString:
    """A sentence in the reader's language, its values shown in their own way."""
    if isinstance(sentence, str):
        return format_html("{}", gettext(sentence))
    return _sentence(sentence, context["now"])


def _sentence(sentence: Sentence, now: datetime) -> SafeString:
    values = {name: _value(value, now) for name, value in sentence.values.items()}
    # Without values there is nothing to fill in, and braces stay what they are.
    text = gettext(sentence.text)
    return format_html(text, **values) if values else format_html("{}", text)


@register.simple_tag
def pill(status: str, size: str = "") -> SafeString:
    """The recorded status: icon and word, colour only beside them."""
    return format_html(
        '<span class="pill pill--{}{}">{}{}</span>',
        status,
        f" pill--{size}" if size else "",
        icon(status),
        wording.STATUS[status],
    )


@register.simple_tag
def flag(attention: str) -> SafeString:
    """A flag that asks for a person."""
    return format_html(
        '<span class="flag">{}{}</span>',
        icon(wording.ATTENTION_ICON[attention], "sm"),
        wording.ATTENTION[attention],
    )


@register.simple_tag(takes_context=True)
def window_of(context: Context, operation: Operation) -> wording.KeyWindow:
    """The operation's key window now."""
    return wording.key_window(
        operation.key_window_closes_at,
        started=operation.first_sent_at is not None,
        now=context["now"],
    )


@register.simple_tag
def delivery_state(state: str) -> SafeString:
    """How far a delivery is: icon and word."""
    return _mark(notice_wording.STATE[state])


@register.simple_tag(takes_context=True)
def subscription_state(context: Context, subscription: Subscription) -> SafeString:
    """Whether a subscription is told, in trouble, or disabled."""
    if subscription.disabled_at is not None or subscription.key_has_ended(context["now"]):
        return _mark(notice_wording.DISABLED)
    return _mark(notice_wording.FAILING if subscription.failures else notice_wording.WELL)


@register.filter
def notice_type(kind: str) -> str:
    """What a notice is about."""
    return str(notice_wording.TYPE.get(kind, kind))


def _mark(shown: notice_wording.Shown) -> SafeString:
    return format_html(
        '<span class="mark mark--{}">{}{}</span>', shown.tone, icon(shown.icon, "sm"), shown.word
    )


@register.filter
def label(value: str, words: str) -> str:
    """The word for a value, from the list of words named `words`."""
    table: dict[str, Any] = getattr(wording, words)
    return str(table.get(value, value))


@register.filter
def labels(values: Iterable[str], words: str) -> str:
    """The words for several values, for one sentence."""
    return "; ".join(label(value, words) for value in values)


@register.simple_tag
def verdict(value: str) -> SafeString:
    """How one field compares: icon and word."""
    shown = wording.VERDICT[value]
    return format_html(
        '<span class="mark mark--{}">{}{}</span>', shown.tone, icon(shown.icon, "sm"), shown.word
    )


@register.simple_tag
def hint(row: Weighed) -> SafeString:
    """What speaks for or against a possible operation: icon and word."""
    shown = wording.VERDICT[row.verdict]
    return format_html(
        '<span class="mark mark--{}">{}{}</span>',
        shown.tone,
        icon(shown.icon, "sm"),
        wording.HINT[row.hint],
    )


def _value(value: Value, now: datetime) -> SafeString | str:
    match value:
        case Outside(text):
            return outside(text)
        case datetime():
            return _moment(value, now)
        case Money():
            return format_html('<span class="money">{}</span>', money(value))
        case Sentence():
            return _sentence(value, now)
        case tuple():
            return format_html_join("; ", "{}", ((_sentence(part, now),) for part in value))
        case _:
            return str(value)


def time_of(at: datetime, now: datetime) -> SafeString:
    """A time in UTC, for those who make more than templates do."""
    return _moment(at, now)


def _moment(at: datetime, now: datetime, *, exact: bool = False) -> SafeString:
    at = at.astimezone(UTC)
    text = wording.clock(at, now)
    if exact:
        text = f"{text}.{at.microsecond // 1000:03}"
    day = at.isoformat(" ", "seconds")[:19]
    return mark_safe(  # noqa: S308 - digits, and the name of a month
        f'<time datetime="{at.isoformat()}" title="{day} UTC">{escape(text)}</time>'
    )
