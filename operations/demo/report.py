"""What came of the story: each order against its expected end, and the totals.

Refunds are what the provider counted by itself; the product's own word is not asked for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from operations.demo.player import Played, money_text
from operations.demo.records import State, states
from operations.domain.statuses import SETTLED, Status


@dataclass(frozen=True, kw_only=True)
class Row:
    """One order's line. `wrong` says what is not as it has to be."""

    order: str
    amount: str
    told: tuple[str, ...]
    states: tuple[State, ...]
    refunds: int
    duplicates: int
    wrong: tuple[str, ...] = field(default=())

    @property
    def attempts(self) -> int:
        """All sends of this order's operations."""
        return sum(state.attempts for state in self.states)


def make_rows(played: Sequence[Played], counts: Mapping[str, Any]) -> list[Row]:
    """One row an order. `counts` are the sandbox's, over everything it ever did."""
    return [_row(one, counts) for one in played]


def totals(
    rows: Sequence[Row], counts: Mapping[str, Any], *, run: int, seconds: float
) -> dict[str, Any]:
    """The last line. `duplicates` takes in what earlier runs left at the same sandbox."""
    now = [state for row in rows for state in row.states]
    this_run = {state.operation_id for state in now}
    earlier = sum(
        max(0, figures["refunds_all"] - 1)
        for operation, figures in counts["by_operation"].items()
        if operation not in this_run
    )
    duplicates = sum(row.duplicates for row in rows) + earlier
    wrong = [row.order for row in rows if row.wrong]
    return {
        "run": run,
        "orders": len(rows),
        "operations": len(now),
        "attempts": sum(row.attempts for row in rows),
        "refunds": sum(row.refunds for row in rows),
        "settled": sum(state.status in SETTLED for state in now),
        "succeeded": sum(state.status is Status.SUCCEEDED for state in now),
        "failed": sum(state.status is Status.FAILED for state in now),
        "unknown": sum(state.status is Status.UNKNOWN for state in now),
        "unfinished": sum(state.status in (Status.OPEN, Status.PROCESSING) for state in now),
        "duplicates": duplicates,
        "wrong": len(wrong),
        "wrong_orders": wrong,
        "seconds": round(seconds, 1),
        "ok": not wrong and duplicates == 0,
    }


def table(rows: Sequence[Row]) -> list[str]:
    """The table, a line each."""
    head = ("order", "amount", "the agent was told", "attempts", "refunds", "status now")
    cells = [
        (
            row.order,
            row.amount,
            " → ".join(row.told),
            str(row.attempts),
            str(row.refunds),
            ", ".join(_status_now(state) for state in row.states) or "no operation",
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in [head, *cells]) for column in range(len(head))]
    lines = [_line(head, widths), "  ".join("-" * width for width in widths)]
    for row, line in zip(rows, cells, strict=True):
        lines.append(_line(line, widths))
        lines.extend(f"  WRONG: {text}" for text in row.wrong)
    return lines


def totals_line(figures: Mapping[str, Any]) -> str:
    """The totals in a sentence."""
    return (
        f"{figures['operations']} operations, {figures['attempts']} attempts, "
        f"{figures['refunds']} refunds counted by the provider, {figures['settled']} settled, "
        f"{figures['unknown']} waiting for a person, duplicates {figures['duplicates']}"
        + (f", WRONG {figures['wrong']}" if figures["wrong"] else "")
        + f" ({figures['seconds']:g} s)"
    )


def _row(played: Played, counts: Mapping[str, Any]) -> Row:
    found = tuple(states(played.agent.operations()))
    by_operation = [
        counts["by_operation"].get(state.operation_id, {"refunds": 0, "refunds_all": 0})
        for state in found
    ]
    ours = sum(figures["refunds_all"] for figures in by_operation)
    of_payment = counts["by_payment"][played.charge]["refunds_all"]
    unasked = max(0, of_payment - played.outside - ours)
    row = Row(
        order=played.order.number,
        amount=money_text(played.order),
        told=tuple(played.agent.words()),
        states=found,
        refunds=sum(figures["refunds"] for figures in by_operation),
        duplicates=unasked + sum(max(0, one["refunds_all"] - 1) for one in by_operation),
    )
    return Row(**{**vars(row), "wrong": tuple(_wrong(played, row))})


def _wrong(played: Played, row: Row) -> list[str]:
    """What differs from the expected end, in words."""
    end = played.order.end
    wrong = [played.problem] if played.problem else []
    if len(row.states) != end.operations:
        wrong.append(f"{len(row.states)} operations, not {end.operations}")
    for state in row.states:
        if state.status != end.status:
            wrong.append(f"the status is {state.status}, not {end.status}")
        elif state.reason != (end.reason or ""):
            wrong.append(f"unknown because of {state.reason}, not {end.reason}")
    if row.refunds != end.refunds:
        wrong.append(f"{row.refunds} refunds, not {end.refunds}")
    if row.duplicates:
        wrong.append(f"{row.duplicates} refunds that nobody asked for")
    if end.attempts is not None and row.attempts != end.attempts:
        wrong.append(f"{row.attempts} attempts, not {end.attempts}")
    if not _in_this_order(end.told, row.told):
        wrong.append(f"the agent was told {', '.join(row.told)}, not {', '.join(end.told)}")
    return wrong


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = zip(cells, widths, strict=True)
    return "  ".join(cell.ljust(width) for cell, width in pairs).rstrip()


def _in_this_order(wanted: Sequence[str], told: Sequence[str]) -> bool:
    rest = iter(told)
    return all(word in rest for word in wanted)


_SETTLED_BY = {"answer": "the answer", "webhook": "a webhook", "lookup": "a look-up"}


def _status_now(state: State) -> str:
    if state.reason:
        return f"{state.status} ({state.reason})"
    by = _SETTLED_BY.get(state.settled_by, state.settled_by)
    return f"{state.status} by {by}" if by else str(state.status)
