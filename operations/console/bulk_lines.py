"""What the pages about many at once show, put together from what was read."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from operations.console import wording
from operations.console.bulk_wording import FOUND, OUTLOOK, RESULT, RUN_WHY, THEN, WHY, Shown
from operations.console.saying import in_words
from operations.domain.bulk import BulkAction, Outlook
from operations.domain.money import Money
from operations.domain.sentences import from_kept
from operations.models import BulkResult, BulkRow, BulkRun, BulkState
from operations.queries.bulk import PAGE, Results, rows_to_show
from operations.templatetags.showing import outside

#: How many rows of each group a preview shows before it is asked for more.
_SOME = 10
#: In the order in which they are looked at: problems first.
OUTLOOKS = (Outlook.CANNOT, Outlook.SECOND, Outlook.WILL)


#: What an action rests on where nothing speaks against it.
_REST: dict[str, Any] = {
    BulkAction.CLOSE_FAILED: gettext_lazy(
        "a complete look-up of the last 15 minutes found no refund"
    )
}


class Line(NamedTuple):
    """One row as a page shows it."""

    row: BulkRow
    money: Money
    result: Shown
    why: str
    detail: SafeString | str


class Group(NamedTuple):
    """Rows of one outlook, of which some are shown."""

    outlook: str
    shown: Shown
    then: Any
    number: int
    lines: list[Line]
    more_after: int | None


class Total(NamedTuple):
    """The sums of one currency, in the order of `OUTLOOKS`; None for none."""

    currency: str
    sums: list[Money | None]


def groups_of(run: BulkRun, *, show: str, after: int) -> list[Group]:
    """What a preview says of its rows: some of each outlook, or a page of one. A query each."""
    found = []
    for outlook in OUTLOOKS:
        count = run.counts.get(outlook, 0)
        if not count or (show and show != outlook):
            continue
        most = PAGE if show else _SOME
        lines, more_after = page_of_lines(run, show=outlook, after=after if show else 0, most=most)
        shown, then = OUTLOOK[outlook], THEN[outlook]
        found.append(Group(outlook, shown, then, count, lines, more_after))
    return found


def page_of_lines(
    run: BulkRun, *, show: str, after: int, most: int = PAGE
) -> tuple[list[Line], int | None]:
    """Rows in their order, and the place after which there are more. One query."""
    rows = rows_to_show(run, show=show, after=after, most=most)
    lines = [_line(row, run.action) for row in rows[:most]]
    return lines, rows[most - 1].place if len(rows) > most else None


def totals_of(run: BulkRun) -> list[Total]:
    """Sums per currency. Currencies are never added together."""
    return [
        Total(
            currency.upper(),
            [Money(sums[name], currency) if name in sums else None for name in OUTLOOKS],
        )
        for currency, sums in run.sums.items()
    ]


def tallies_of(run: BulkRun) -> list[tuple[Shown, Any, int]]:
    """How many there are of each outlook, what will be done first."""
    return [(OUTLOOK[name], THEN[name], run.counts.get(name, 0)) for name in reversed(OUTLOOKS)]


def results_shown(results: Results) -> list[tuple[str, Shown, int]]:
    """How many rows have which result, in the order of the words; what waits is not among them."""
    return [
        (name, shown, results.counts[name])
        for name, shown in RESULT.items()
        if name and results.counts.get(name)
    ]


def reasons_of(run: BulkRun) -> list[str]:
    """Why the run wants a second person."""
    return [str(RUN_WHY[reason]) for reason in run.reasons]


def button_of(run: BulkRun) -> str:
    """What pressing it does, with how many."""
    will, second = (run.counts.get(name, 0) for name in (Outlook.WILL, Outlook.SECOND))
    if run.reasons:
        return _("Send to a second person")
    match BulkAction(run.action):
        case BulkAction.LOOK_UP:
            text = _("Look up {will}")
        case BulkAction.MATCH_AGAIN:
            text = _("Match {will} again")
        case BulkAction.CLAIM:
            text = _("Claim {will}")
        case BulkAction.ASSIGN:
            text = _("Assign {will}")
        case BulkAction.MARK_OUTSIDE:
            text = _("Mark {will} as made outside")
        case _ if not will:
            text = _("Propose {second}")
        case BulkAction.CLOSE_FAILED if second:
            text = _("Close {will} as failed, propose {second}")
        case BulkAction.CLOSE_FAILED:
            text = _("Close {will} as failed")
        case _ if second:
            text = _("Close {will} as succeeded, propose {second}")
        case _:
            text = _("Close {will} as succeeded")
    return text.format(will=will, second=second)


def is_live(run: BulkRun) -> bool:
    """Whether it changes by itself."""
    return run.state == BulkState.RUNNING


def _line(row: BulkRow, action: str) -> Line:
    why: Any = "; ".join(str(WHY.get(reason, reason)) for reason in row.why)
    if not why and row.outlook == Outlook.WILL:
        why = row.refund or _REST.get(action, "")
    return Line(row, Money(row.amount, row.currency), RESULT[row.result], str(why), _detail(row))


def _detail(row: BulkRow) -> SafeString | str:
    if row.said is not None:
        return in_words(from_kept(row.said))
    match row.result:
        case BulkResult.SKIPPED:
            status = wording.STATUS.get(row.left_as, row.left_as)
            text = _("Changed by {name} since the preview. Its status then: {status}.")
            return _filled(text, name=outside(row.detail or "?"), status=status)
        case BulkResult.LOOKED_UP:
            return str(FOUND.get(row.detail, row.detail))
        case BulkResult.REFUSED | BulkResult.FAILED:
            return _why_not(row)
        case BulkResult.LEFT:
            return "; ".join(str(WHY.get(reason, reason)) for reason in row.why)
        case _:
            return ""


def _why_not(row: BulkRow) -> SafeString | str:
    if row.detail in FOUND:
        return str(FOUND[row.detail])
    names: Sequence[str] = row.detail.split()
    if names and all(name in WHY for name in names):
        return "; ".join(str(WHY[name]) for name in names)
    return outside(row.detail)


def _filled(text: str, **values: Any) -> SafeString:
    return format_html(text, **values)
