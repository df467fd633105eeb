"""The lines of a list, from one template that is rendered once a page.

A page has fifty lines. Its row is rendered with holes in it, and each line fills them: what is the
same for many lines is made once, and all that comes from outside is escaped and isolated here.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from html import escape
from typing import Any

from django.template.loader import get_template
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext

from operations.console import wording
from operations.domain.advice import Situation, Step, advise
from operations.domain.money import Money
from operations.domain.sentences import Sentence
from operations.domain.statuses import SETTLED, Attention, Status
from operations.models import EvidenceSource
from operations.queries.dossier import absence_holds, lookup_result
from operations.queries.evidence import EvidenceLine, in_words
from operations.queries.queue import QueueRow
from operations.templatetags.showing import (
    flag,
    icon,
    initials,
    money,
    pill,
    say,
    short_id,
    time_of,
)

_SHORT = 60
_NO_ID = "00000000-0000-0000-0000-000000000000"
#: The holes of `_row.html`.
_HOLES = (
    "id",
    "short_id",
    "href",
    "source",
    "order",
    "amount",
    "currency",
    "status",
    "why",
    "age",
    "window",
    "evidence",
    "suggested",
    "because",
    "claim",
)


def lines_of(
    rows: Sequence[QueueRow], *, person: str, now: datetime, ticks: bool = False
) -> SafeString:
    """The lines of these rows as `person` sees them now, as HTML. `ticks`: they can be selected."""
    if not rows:
        return mark_safe("")
    row_of, maker = _row_template(get_language() or "en", ticks), _Lines(person, now)
    return mark_safe("".join([row_of(maker.cells(row)) for row in rows]))  # noqa: S308 - see `cells`


@cache
def _row_template(language: str, ticks: bool) -> Callable[[dict[str, str]], str]:
    """`_row.html` in the reader's language, which is the current one, to be filled in."""
    holes = {name: mark_safe(f"\x00{name}\x00") for name in _HOLES}  # noqa: S308 - constants
    pieces = get_template("operations/_row.html").render({**holes, "ticks": ticks}).split("\x00")
    pieces[::2] = [piece.replace("%", "%%") for piece in pieces[::2]]
    pieces[1::2] = [f"%({name})s" for name in pieces[1::2]]
    return "".join(pieces).__mod__


class _Lines:
    def __init__(self, person: str, now: datetime) -> None:
        self._person, self._now = person, now
        self._context: Any = {"now": now}
        self._made: dict[Any, str] = {}
        self._address = reverse("operation", args=[_NO_ID])

    def cells(self, row: QueueRow) -> dict[str, str]:
        """What fills the holes: HTML, in which every text from outside is escaped."""
        pk = str(row.id)
        advice = advise(_situation(row, self._now))
        order = _outside(row.order_id)
        if row.reference:
            order += f'<span class="sub">{_outside(row.reference)}</span>'
        return {
            "id": pk,
            "short_id": short_id(pk),
            "href": self._address.replace(_NO_ID, pk),
            "source": self._once(_outside, row.agent or row.account),
            "order": order,
            "amount": escape(money(Money(row.amount, row.currency))),
            "currency": escape(row.currency.upper()),
            "status": self._status(row),
            "why": self._why(row),
            "age": self._ago(row.needs_person_since or row.created_at),
            "window": self._window(row),
            "evidence": self._evidence(row),
            "suggested": self._once(_suggested, advice.step, advice.label),
            "because": self._say(advice.why),
            "claim": self._once(self._claim, row.holder, row.holder_name),
        }

    def _once(self, make: Callable[..., str], *asked: Any) -> str:
        key = (make.__name__, *asked)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = make(*asked)
        return made

    def _word(self, text: str) -> str:
        return self._once(gettext, text)

    def _say(self, sentence: Sentence) -> str:
        if sentence.values:
            return say(self._context, sentence)
        return self._once(self._said, sentence.text)

    def _said(self, text: str) -> str:
        return say(self._context, text)

    def _status(self, row: QueueRow) -> str:
        made = self._once(pill, row.status)
        for name in row.attention:
            made += self._once(flag, name)
        return made

    def _why(self, row: QueueRow) -> str:
        if row.unknown_reason:
            return self._once(_reason, row.unknown_reason)
        text = row.failure_message
        if not text:
            return ""
        return _outside(text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…")

    def _ago(self, since: datetime) -> str:
        span = self._now - since
        seconds = max(0, int(span.total_seconds()))
        return f'<time datetime="PT{seconds}S">{wording.duration(span)}</time>'

    def _window(self, row: QueueRow) -> str:
        closes = row.key_window_closes_at
        if closes is None or closes <= self._now:
            shown = self._once(self._no_window, closes is None, row.first_sent_at is not None)
            if closes is None:
                return shown
            ago = self._word("{time} ago").format(time=wording.duration(self._now - closes))
            return f'{shown}<span class="sub">{escape(ago)}</span>'
        window = wording.key_window(closes, started=True, now=self._now)
        picture = self._once(icon, window.icon, "sm")
        return _window_span(window, escape(window.text), picture)

    def _no_window(self, is_missing: bool, was_sent: bool) -> str:
        window = wording.key_window(
            None if is_missing else self._now, started=was_sent, now=self._now
        )
        return _window_span(window, escape(window.text), icon(window.icon, "sm"))

    def _evidence(self, row: QueueRow) -> str:
        newest = row.evidence
        if newest is None:
            return f'<span class="muted">{escape(self._word("Nothing yet"))}</span>'
        told = self._say(in_words(newest, settled=row.status in SETTLED))
        source = self._once(_source, newest.source)
        at = time_of(newest.observed_at, self._now)
        return f'{told}<span class="sub">{source}, {at}</span>'

    def _claim(self, holder: str, name: str) -> str:
        if not holder:
            return f'<span class="muted">{escape(gettext("Unclaimed"))}</span>'
        mine = holder == self._person
        who = escape(gettext("You")) if mine else _outside(name)
        return (
            f'<span class="who"><span class="avatar{" avatar--you" if mine else ""}"'
            f' aria-hidden="true">{escape(initials(name))}</span>{who}</span>'
        )


def _outside(text: str) -> str:
    return f'<bdi dir="auto">{escape(text)}</bdi>'


def _reason(name: str) -> str:
    return escape(str(wording.REASON.get(name, name)))


def _source(name: str) -> str:
    return escape(str(wording.SOURCE.get(name, name)))


def _suggested(step: Step, label: str) -> str:
    return f"{icon(wording.ADVICE_ICON[step], 'sm')}{escape(gettext(label))}"


def _window_span(window: wording.KeyWindow, text: str, picture: str) -> str:
    counts = f' data-closes="{window.closes}"' if window.closes else ""
    return f'<span class="window window--{window.state}"{counts}>{picture}{text}</span>'


def _situation(row: QueueRow, now: datetime) -> Situation:
    closes, newest = row.key_window_closes_at, row.evidence
    facts = _lookup_of(newest)
    return Situation(
        status=Status(row.status),
        attention=frozenset(Attention(name) for name in row.attention),
        proposal_waits=row.proposal_waits,
        window_closed=row.status == Status.UNKNOWN if closes is None else closes <= now,
        last_lookup=lookup_result(facts) if facts is not None else "",
        lookups_made=row.lookups_made,
        absence_holds=facts is not None and absence_holds(facts),
        next_check_at=row.next_check_at,
        now=now,
    )


def _lookup_of(newest: EvidenceLine | None) -> Any:
    """The facts of the newest evidence when it is a look-up."""
    looked = newest is not None and newest.source == EvidenceSource.LOOKUP
    return newest.facts if newest is not None and looked else None
