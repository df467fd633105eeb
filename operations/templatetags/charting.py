"""Figures as people read them: durations, shares, and numbers on a chart's edge."""

from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils import formats, timezone
from django.utils.translation import gettext as _

from operations.console import wording
from operations.domain.money import Money
from operations.templatetags.showing import money

register = template.Library()


@register.filter
def span(seconds: float | None) -> str:
    """A duration in its two largest units; a dash for none."""
    return "-" if seconds is None else wording.duration(timedelta(seconds=seconds))


@register.filter
def figure(value: float | None, places: int = 0) -> str:
    """A number with so many decimals, as the reader's language writes it; a dash for none."""
    if value is None:
        return "-"
    # Django cuts what it does not show.
    value = round(value, places)
    return formats.number_format(value, decimal_pos=places, use_l10n=True, force_grouping=True)


@register.filter
def day(value: datetime) -> str:
    """A day of the week and of the month, in the reader's time zone."""
    return formats.date_format(timezone.localtime(value), "D j")


@register.filter
def hour(value: datetime) -> str:
    """An hour of the reader's day."""
    return f"{timezone.localtime(value):%H}"


@register.filter
def interval(amounts: list[Money]) -> list[str]:
    """From nothing to all of it, a currency each: what may have moved."""
    return [
        _("{least} to {most}").format(least=money(Money(0, each.currency)), most=money(each))
        for each in amounts
    ]


@register.filter
def lookup(table: dict[Any, Any], key: Any) -> Any:
    """The value under a key."""
    return table.get(key, key)
