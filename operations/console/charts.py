"""Where the parts of a chart lie: x in per cent of its width, y in pixels, so that text never
scales. A chart says the same as the table under it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEFT, RIGHT = 9.0, 100.0
TOP, BOTTOM = 18.0, 144.0


@dataclass(frozen=True, slots=True)
class Grid:
    """One line across, with its label."""

    y: str
    text_y: str
    value: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; `height` is "" for none. `minor`: its label is left out where there is no room."""

    x: str
    y: str
    width: str
    height: str
    middle: str
    value_y: str
    value: int
    label: str
    minor: bool


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a line, and the line that leads to it; `from_x` is "" for the first."""

    x: str
    y: str
    from_x: str
    from_y: str
    label: str
    minor: bool
    is_bad: bool = False


def scale_top(most: float) -> float:
    """The next of 2, 4, 10, 20, 40, … that holds `most`: half of it is a round number, too."""
    if most <= 2:
        return 2
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 2, 4, 10) if step * power >= most)


def grid(top: float, *, bottom: float = 0) -> list[Grid]:
    """Three lines: the bottom, the middle and the top."""
    values = (bottom, (bottom + top) / 2, top)
    return [Grid(f"{_y(v, top, bottom):.2f}", f"{_y(v, top, bottom) + 4:.2f}", v) for v in values]


def bars(
    values: Sequence[int], labels: Sequence[str], *, top: float, part: int = 0, parts: int = 1
) -> list[Bar]:
    """Bars side by side; of `parts` series this one is number `part`."""
    slot = (RIGHT - LEFT) / max(1, len(values))
    width = slot * 0.62 / parts
    thin = max(1, math.ceil(len(values) / 12))
    made = []
    for place, value in enumerate(values):
        middle = LEFT + slot * (place + 0.5)
        x = middle - slot * 0.31 + width * part
        y = _y(value, top, 0)
        made.append(
            Bar(
                x=f"{x:.2f}%",
                y=f"{y:.2f}",
                width=f"{width * 0.92:.2f}%",
                height=f"{BOTTOM - y:.2f}" if value else "",
                middle=f"{middle:.2f}%",
                value_y=f"{y - 6:.2f}",
                value=value,
                label=labels[place] if place % thin == 0 else "",
                minor=(place // thin) % 2 == 1,
            )
        )
    return made


def line(
    values: Sequence[float | None],
    labels: Sequence[str],
    *,
    top: float,
    bottom: float = 0,
    bad: Sequence[bool] = (),
) -> list[Point]:
    """A line through the values that there are; a gap stays a gap."""
    slot = (RIGHT - LEFT) / max(1, len(values))
    thin = max(1, math.ceil(len(values) / 8))
    made: list[Point] = []
    before: tuple[str, str] = ("", "")
    for place, value in enumerate(values):
        if value is None:
            before = ("", "")
            continue
        x = f"{LEFT + slot * (place + 0.5):.2f}%"
        y = f"{_y(min(value, top), top, bottom):.2f}"
        shown = place % thin == 0
        made.append(
            Point(
                x=x,
                y=y,
                from_x=before[0],
                from_y=before[1],
                label=labels[place] if shown else "",
                minor=(place // thin) % 2 == 1,
                is_bad=bool(bad) and bad[place],
            )
        )
        before = (x, y)
    return made


def _y(value: float, top: float, bottom: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * (value - bottom) / (top - bottom)
