"""What is written down: one operation for one wish, the till, the audit trail, the inbox."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta

from operations.models import EventHandling, Evidence, InboxItem, Request, WebhookEvent
from tests.simulation.checks.judging import Rest, check

_UNRESOLVED = {"open", "processing", "unknown"}


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
    named = Request.objects.filter(operation__tokens__isnull=False)
    tokens = set(named.values_list("operation_id", flat=True))
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
            if other.row.payment_id == history.row.payment_id
            and other.status_at(history.opened) in {*_UNRESOLVED, "succeeded"}
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
        now = history.row.snapshot()
        for entry in history.entries:
            before = {key: entry.before[key] for key in now if key in entry.before}
            if any(shown.get(key) != before[key] for key in before):
                yield f"{history.name} changed before entry {entry.number} ({entry.action})"
            shown |= entry.after
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
    kept = set(WebhookEvent.objects.values_list("event_id", flat=True))
    for letter in rest.world.mail.letters:
        if letter.deliveries and letter.event_id not in kept:
            yield f"{letter.event_id} was acknowledged and is lost"
    for item in InboxItem.objects.all():
        yield f"{item.provider_event_id}: {item.error or 'never handled'}"
    handled = set(EventHandling.objects.values_list("provider_event_id", flat=True))
    for event_id in kept - handled:
        yield f"{event_id}: nobody knows what became of it"
    for failed in EventHandling.objects.exclude(error=""):
        yield f"{failed.provider_event_id}: {failed.error}"
