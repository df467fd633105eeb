"""The promises, one function each, judged on what the provider counted and what the tables hold.

Each is called with a world at rest and yields a sentence for everything that is wrong.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import pairwise

from operations.models import Evidence, Request, WebhookEvent
from tests.simulation.histories import History, read_histories
from tests.simulation.provider import KEY_KEPT_S, Send
from tests.simulation.world import SimulationFailed, World

_CONTESTED = {"conflict", "duplicate_refund", "mismatch"}
_REFUSALS = {400, 402, 404}
_UNRESOLVED = {"open", "processing", "unknown"}


@dataclass
class Rest:
    """A world that has come to rest."""

    world: World

    @cached_property
    def histories(self) -> list[History]:
        """All operations."""
        return read_histories()

    @cached_property
    def sends_by_operation(self) -> dict[str, list[Send]]:
        """What arrived at the provider, by the operation that it names."""
        found = defaultdict(list)
        for send in self.world.provider.sends:
            found[send.operation].append(send)
        return found


Check = Callable[[Rest], Iterator[str]]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Register a promise."""
    CHECKS.append(function)
    return function


def judge(world: World) -> None:
    """Raise SimulationFailed for the first promise that was broken."""
    rest = Rest(world)
    for promise in CHECKS:
        for wrong in promise(rest):
            raise SimulationFailed(promise.__name__, wrong)


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
        if len({repr(sorted(send.parameters.items())) for send in sends}) > 1:
            yield f"{name} was sent with several bodies"


@check
def nothing_sent_after_the_window(rest: Rest) -> Iterator[str]:
    """No send arrives when the provider may have forgotten the key."""
    for name, sends in rest.sends_by_operation.items():
        age = sends[-1].time - sends[0].time
        if age >= KEY_KEPT_S:
            yield f"{name} was sent {age:.0f} s after its first send"


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
def succeeded_means_refunded(rest: Rest) -> Iterator[str]:
    """Never `succeeded` without a refund at the provider that succeeded."""
    for history in rest.histories:
        if history.row.status != "succeeded":
            continue
        made = rest.world.provider.made.get(history.row.provider_object_id)
        if made is None or made.refund.status != "succeeded":
            seen = made.refund.status if made else "not there"
            yield f"{history.name} is succeeded, its refund is {seen}"


@check
def failed_means_not_refunded(rest: Rest) -> Iterator[str]:
    """Never `failed` while a refund of it is live; if a person erred, both sides are shown."""
    for history in rest.histories:
        if history.row.status != "failed":
            continue
        for made in rest.world.provider.refunds_of(history.name):
            shown = history.closed_by_hand and _CONTESTED & history.ever_shown()
            if made.refund.live and not shown:
                yield f"{history.name} is failed, {made.refund.id} is {made.refund.status}"


@check
def failed_has_a_ground(rest: Rest) -> Iterator[str]:
    """`failed` rests on a refusal, on a refund that failed, or on a person; not on absence."""
    for history in rest.histories:
        if history.row.status != "failed" or history.closed_by_hand:
            continue
        refused = any(send.status in _REFUSALS for send in rest.sends_by_operation[history.name])
        dead = any(
            not made.refund.live for made in rest.world.provider.refunds_of(history.name)
        )
        if not refused and not dead:
            yield f"{history.name} is failed, and the provider never said so"


@check
def what_is_settled_stays(rest: Rest) -> Iterator[str]:
    """A failure is final; a success changes only when the refund failed later."""
    for history in rest.histories:
        for before, after in pairwise(history.statuses()):
            if before == "failed" or (before == "succeeded" and after != "failed"):
                yield f"{history.name} went from {before} to {after}"


@check
def settled_or_in_front_of_a_person(rest: Rest) -> Iterator[str]:
    """Every operation ends somewhere: settled, or asking for a person."""
    for history in rest.histories:
        row = history.row
        if row.status in ("open", "processing") and not row.attention:
            yield f"{history.name} is {row.status} for good, and nobody is asked"
        if (row.status == "unknown" or row.attention) and row.needs_person_since is None:
            yield f"{history.name} needs a person and does not say since when"
        if row.lease_owner or any(not attempt.outcome for attempt in history.attempts):
            yield f"{history.name} has a send in flight for good"


@check
def what_the_provider_told_was_taken(rest: Rest) -> Iterator[str]:
    """An operation whose one refund was shown to us does not stay unknown."""
    told = {
        letter.operation
        for letter in rest.world.mail.letters
        if letter.deliveries and not letter.about_charge
    }
    for history in rest.histories:
        row = history.row
        if row.status not in ("unknown", "processing") or history.ever_shown():
            continue
        refunds = rest.world.provider.refunds_of(history.name)
        if len(refunds) == 1 and history.name in told:
            yield f"{history.name} stays {row.status}, {refunds[0].refund.id} was shown to us"


@check
def nothing_is_taken_from_others(rest: Rest) -> Iterator[str]:
    """A refund that others made is an operation's only if a person said so."""
    for history in rest.histories:
        made = rest.world.provider.made.get(history.row.provider_object_id)
        if made is None or made.key == history.row.idempotency_key:
            continue
        if not any(entry.action == "closed_succeeded" for entry in history.entries):
            yield f"{history.name} took {made.refund.id}, which it did not make"


@check
def one_operation_at_a_time(rest: Rest) -> Iterator[str]:
    """Of one order and reference at most one operation is unresolved at any time."""
    by_identity = defaultdict(list)
    for history in rest.histories:
        by_identity[history.row.order_id, history.row.reference].append(history)
    for (order, reference), histories in by_identity.items():
        for number, later in enumerate(histories):
            for earlier in histories[:number]:
                if earlier.status_at(later.opened) in _UNRESOLVED:
                    yield f"{order}{reference}: {later.name} opened beside {earlier.name}"


@check
def a_repeated_wish_is_one_operation(rest: Rest) -> Iterator[str]:
    """Without a token, a wish that was just fulfilled is not fulfilled again."""
    window = timedelta(seconds=rest.world.engine.repeat_window_s)
    tokens = {
        operation_id
        for operation_id in Request.objects.filter(operation__tokens__isnull=False).values_list(
            "operation_id", flat=True
        )
    }
    for number, later in enumerate(rest.histories):
        if later.row.pk in tokens:
            continue
        for earlier in rest.histories[:number]:
            same = earlier.row.input_hash == later.row.input_hash
            if (
                same
                and earlier.status_at(later.opened) == "succeeded"
                and later.row.created_at - earlier.settled_at(later.opened) < window
            ):
                yield f"{later.name} repeats {earlier.name}, which had succeeded"


@check
def the_till_holds(rest: Rest) -> Iterator[str]:
    """When an operation is opened, it and all that is or may be out fit in what was captured."""
    captured = rest.world.weather.captured
    for number, history in enumerate(rest.histories):
        ours = sum(
            other.row.amount
            for other in rest.histories[:number]
            if other.status_at(history.opened) in {*_UNRESOLVED, "succeeded"}
        )
        if ours + history.row.amount > captured:
            yield f"{history.name}: {ours} + {history.row.amount} of {captured}"


@check
def the_audit_is_whole(rest: Rest) -> Iterator[str]:
    """Every change of what the audit shows has its entry, and the chain is unbroken."""
    for history in rest.histories:
        if not history.is_whole():
            yield f"the chain of {history.name} is broken"
        shown: dict[str, object] = {}
        for entry in history.entries:
            if entry.before and any(shown.get(key) != entry.before[key] for key in entry.before):
                yield f"{history.name} changed before entry {entry.number} ({entry.action})"
            shown |= entry.after
        now = history.row.snapshot()
        if any(shown.get(key) != now[key] for key in now):
            yield f"{history.name} is {now}, its audit says {shown}"


@check
def every_answer_is_evidence(rest: Rest) -> Iterator[str]:
    """Each attempt that was answered left its evidence, however late."""
    with_evidence = set(
        Evidence.objects.filter(attempt__isnull=False).values_list("attempt_id", flat=True)
    )
    for history in rest.histories:
        for attempt in history.attempts:
            if attempt.pk not in with_evidence:
                yield f"attempt {attempt.number} of {history.name} left no evidence"


@check
def every_event_was_handled(rest: Rest) -> Iterator[str]:
    """What arrived is kept, and no event made its handling fail."""
    kept = {event.event_id: event for event in WebhookEvent.objects.all()}
    for letter in rest.world.mail.letters:
        if letter.deliveries and letter.event_id not in kept:
            yield f"{letter.event_id} was acknowledged and is lost"
    for event in kept.values():
        if event.handled_at is None or event.handling_error:
            yield f"{event.event_id}: {event.handling_error or 'never handled'}"


@check
def sends_began_inside_our_window(rest: Rest) -> Iterator[str]:
    """Our own margin holds as well: no attempt begins after the window that the row states."""
    for history in rest.histories:
        closes_at = history.row.key_window_closes_at
        for attempt in history.attempts[1:]:
            if closes_at is not None and attempt.started_at >= closes_at:
                yield f"{history.name} began attempt {attempt.number} after {closes_at}"


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
