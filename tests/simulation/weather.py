"""How rough one world is, drawn once from its seed, so that worlds differ from each other."""

from dataclasses import dataclass
from random import Random

from tests.simulation.fates import Fate, draw_troubles


@dataclass(frozen=True, kw_only=True)
class Weather:
    """Shares are from 0 to 1, `list_lag_s` in seconds, `outside_refunds` a weight."""

    send_trouble: float
    troubles: tuple[Fate, ...]
    read_trouble: float
    crashes: float
    others_in_between: float
    lost_events: float
    lost_messages: float
    outside_refunds: int
    late_refunds: float
    list_lag_s: float
    clock_wrong: float
    steps: int
    captured: int
    orders: tuple[str, ...]


def draw_weather(rng: Random) -> Weather:
    """Most worlds are rough in a few ways only: one trouble must not hide the others."""
    return Weather(
        send_trouble=rng.choice((0.2, 0.5, 0.8, 0.95)),
        troubles=draw_troubles(rng),
        read_trouble=rng.choice((0.0, 0.0, 0.1, 0.3)),
        crashes=rng.choice((0.0, 0.15, 0.3, 0.6)),
        others_in_between=rng.choice((0.05, 0.3, 0.6)),
        lost_events=rng.choice((0.0, 0.0, 0.3, 0.8)),
        lost_messages=rng.choice((0.0, 0.2, 0.6)),
        outside_refunds=rng.choice((0, 0, 8)),
        late_refunds=rng.choice((0.1, 0.3, 0.7)),
        list_lag_s=rng.choice((0.0, 0.0, 20.0, 55.0)),
        clock_wrong=rng.choice((0.0, 0.0, 0.0, 1.0)),
        steps=rng.randint(1, 6),
        captured=rng.choice((10_000, 10_000, 6_000)),
        # Where there is one order only, everything that happens meets the same operation.
        orders=rng.choice((("A",), ("A", "B"), ("A", "A-1", "B"))),
    )
