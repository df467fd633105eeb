"""What an operation may end as, judged on what the provider has."""

from collections.abc import Iterator
from itertools import pairwise

from tests.simulation.checks.judging import Rest, check

_CONTESTED = {"conflict", "duplicate_refund", "mismatch"}
_REFUSALS = {400, 402, 404}


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
        dead = any(not made.refund.live for made in rest.world.provider.refunds_of(history.name))
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
