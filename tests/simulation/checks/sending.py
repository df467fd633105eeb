"""What may leave us: how often, with which key, and when."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.simulation.checks.judging import Rest, check
from tests.simulation.provider import KEY_KEPT_S


@check
def one_refund_per_operation(rest: Rest) -> Iterator[str]:
    """Our sends made at most one refund for each operation."""
    for history in rest.histories:
        ours = [made for made in rest.world.provider.refunds_of(history.name) if made.key]
        if len(ours) > 1:
            yield f"{history.name} was refunded {len(ours)} times"


@check
def one_key_and_body_per_operation(rest: Rest) -> Iterator[str]:
    """Every send of an operation carries its one key and its one body."""
    for name, sends in rest.sends_by_operation.items():
        if len({send.key for send in sends}) > 1:
            yield f"{name} was sent with several keys"
        if len({send.fingerprint for send in sends}) > 1:
            yield f"{name} was sent with several bodies"


@check
def nothing_sent_after_the_window(rest: Rest) -> Iterator[str]:
    """No send arrives when the provider may have forgotten the key."""
    for name, sends in rest.sends_by_operation.items():
        age = sends[-1].time - sends[0].time
        if age >= KEY_KEPT_S:
            yield f"{name} was sent {age:.0f} s after its first send"


@check
def sends_began_inside_our_window(rest: Rest) -> Iterator[str]:
    """Our own margin holds as well: no attempt begins after the window that the row states."""
    for history in rest.histories:
        closes_at = history.row.key_window_closes_at
        for attempt in history.attempts[1:]:
            if closes_at is not None and attempt.started_at >= closes_at:
                yield f"{history.name} began attempt {attempt.number} after {closes_at}"


@check
def every_send_was_written_down(rest: Rest) -> Iterator[str]:
    """As many attempts as sends, and none lost."""
    known = {history.name: history for history in rest.histories}
    for name, sends in rest.sends_by_operation.items():
        if name not in known:
            yield f"{name} was sent, and no such operation is kept"
        elif len(known[name].attempts) < len(sends):
            yield f"{name}: {len(sends)} sends, {len(known[name].attempts)} attempts"


@check
def sends_are_bounded(rest: Rest) -> Iterator[str]:
    """No operation is sent more often than its budget allows."""
    most = rest.world.engine.budget.attempts_per_operation
    for name, sends in rest.sends_by_operation.items():
        if len(sends) > most:
            yield f"{name} was sent {len(sends)} times"


@check
def one_send_at_a_time(rest: Rest) -> Iterator[str]:
    """A send begins beside another of the same operation or payment only if its lease ran out."""
    flights = rest.world.provider.flights
    for number, later in enumerate(flights):
        for earlier in flights[:number]:
            beside = later.payment == earlier.payment
            in_flight = earlier.ended is None or earlier.ended > later.began
            leased = later.began - earlier.began < rest.world.engine.lease_s
            if beside and in_flight and leased and earlier.offset_s == later.offset_s:
                yield f"{later.key} was sent while {earlier.key} was"


@check
def nothing_sent_after_a_saved_error(rest: Rest) -> Iterator[str]:
    """A 500 is repeated for as long as the key lives: whoever saw one sends nothing more."""
    for history in rest.histories:
        for earlier, later in pairwise(history.attempts):
            if earlier.http_status == 500:
                yield f"{history.name} was sent again as attempt {later.number} after a 500"


@check
def no_send_outlives_its_lease(rest: Rest) -> Iterator[str]:
    """Whoever was held up between writing an attempt down and sending it does not send it."""
    if rest.world.weather.clock_wrong:
        return
    attempts = defaultdict(list)
    for history in rest.histories:
        for attempt in history.attempts:
            attempts[attempt.idempotency_key].append(attempt.started_at.timestamp())
    for flight in rest.world.provider.flights:
        begun = [at for at in attempts[flight.key] if at <= flight.began + 0.001]
        if begun and flight.began - max(begun) >= rest.world.engine.lease_s:
            yield f"{flight.key} left {flight.began - max(begun):.0f} s after its attempt"
