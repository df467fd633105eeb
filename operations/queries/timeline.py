"""The timeline of an operation: requests, attempts, webhooks, look-ups, people, in one order."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from operations.domain.answers import AnswerKind
from operations.domain.classify import Outcome
from operations.domain.sentences import Outside, Sentence, say
from operations.domain.statuses import Status
from operations.models import (
    Attempt,
    AuditEntry,
    Evidence,
    EvidenceSource,
    Handling,
    Request,
    WebhookEvent,
)
from operations.queries.dossier import Dossier, provider_label


class EventKind(StrEnum):
    """What an event of the timeline is; the page draws an icon for it."""

    REQUEST = "agent"
    ATTEMPT = "send"
    LOOKUP = "search"
    WEBHOOK = "webhook"
    PERSON = "person"
    STATUS = "unknown"


class Tone(StrEnum):
    """How an event's mark is drawn."""

    PLAIN = ""
    BAD = "bad"
    GOOD = "good"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class TimelineEvent:
    """One thing that happened. `outside` is text that others wrote; `raw` what is kept of it.

    `tags` are short facts; `meta` ids and durations that came from outside.
    """

    at: datetime
    kind: EventKind
    anchor: str
    head: Sentence
    text: Sentence | None = None
    outside: str = ""
    tone: Tone = Tone.PLAIN
    tags: tuple[tuple[str, Tone], ...] = ()
    meta: tuple[str, ...] = ()
    raw: dict[str, Any] = field(default_factory=dict)


def timeline(dossier: Dossier) -> list[TimelineEvent]:
    """All events, oldest first."""
    events = [
        *_requests(dossier),
        *(_attempt(dossier, row) for row in dossier.attempts),
        *_evidence(dossier),
        *_quiet_webhooks(dossier),
        *(event for row in dossier.audit if (event := _audit(row)) is not None),
    ]
    return sorted(events, key=lambda event: event.at)


def _requests(dossier: Dossier) -> Iterator[TimelineEvent]:
    for place, row in enumerate(dossier.requests):
        yield TimelineEvent(
            at=row.received_at,
            kind=EventKind.REQUEST,
            anchor=f"request-{row.pk}",
            head=say("Tool call {id}", id=Outside(row.tool_call_id))
            if row.tool_call_id
            else say("Request"),
            text=say(
                "{who} asked to refund {money} for order {order}.",
                who=Outside(_asker(row)),
                money=dossier.operation.money,
                order=Outside(dossier.operation.order_id),
            )
            if place == 0
            else say("{who} asked again. It joined this operation.", who=Outside(_asker(row))),
            meta=(row.agent_run_id,) if row.agent_run_id else (),
            raw={
                "tool_call_id": row.tool_call_id,
                "agent_run_id": row.agent_run_id,
                "payment": row.payment_asked,
                "input_hash": row.input_hash,
            },
        )


def _asker(row: Request) -> str:
    return row.api_key.name if row.api_key else "An operator"


def _attempt(dossier: Dossier, row: Attempt) -> TimelineEvent:
    provider = provider_label(dossier.operation.account.provider)
    tags: list[tuple[str, Tone]] = []
    if row.http_status is not None:
        good = 200 <= row.http_status < 300
        tags.append((f"HTTP {row.http_status}", Tone.GOOD if good else Tone.BAD))
    if row.replayed:
        tags.append(("Replayed", Tone.PLAIN))
    meta = [row.provider_request_id] if row.provider_request_id else []
    if row.duration_ms is not None:
        meta.append(f"{row.duration_ms / 1000:.2f} s")
    return TimelineEvent(
        at=row.started_at,
        kind=EventKind.ATTEMPT,
        anchor=f"attempt-{row.number}",
        head=say("Attempt {n}", n=row.number),
        text=_attempt_text(row, provider),
        outside=row.message if row.outcome == Outcome.REFUSED else "",
        tone=Tone.PLAIN if row.outcome in ("", Outcome.ACCEPTED) else Tone.BAD,
        tags=tuple(tags),
        meta=tuple(meta),
        raw={
            "request": {
                "path": dossier.operation.endpoint,
                "idempotency_key": row.idempotency_key,
                "body": row.parameters,
            },
            "answer": {
                "outcome": row.outcome or None,
                "status": row.http_status,
                "request_id": row.provider_request_id or None,
                "replayed": row.replayed,
                "should_retry": row.should_retry,
                "error_type": row.error_type or None,
                "error_code": row.error_code or None,
                "message": row.message or None,
                "body": row.body,
            },
        },
    )


def _attempt_text(row: Attempt, provider: str) -> Sentence:
    if not row.outcome:
        return say("Sent. No answer has come yet.")
    if row.answer_kind == AnswerKind.INTERRUPTED:
        return say("Our process went away before the answer was saved.")
    if row.answer_kind == AnswerKind.CONNECTION_LOST:
        return say("The connection was lost before an answer came.")
    if row.answer_kind == AnswerKind.NOT_SENT:
        return say("It did not leave: no connection was made.")
    if row.replayed:
        return say("Same key. {provider} repeated its first answer.", provider=provider)
    match row.outcome:
        case Outcome.ACCEPTED:
            return say("{provider} answered with a refund.", provider=provider)
        case Outcome.REFUSED:
            return say("{provider} refused.", provider=provider)
        case Outcome.NOT_EXECUTED:
            return say("{provider} did not carry it out.", provider=provider)
        case _:
            return say("The answer does not tell whether the refund exists.")


def _evidence(dossier: Dossier) -> Iterator[TimelineEvent]:
    lookups = 0
    answered: set[object] = set()
    for row in dossier.evidence:
        match row.source:
            case EvidenceSource.LOOKUP:
                lookups += 1
                yield _lookup(row, lookups)
            case EvidenceSource.WEBHOOK:
                yield _webhook(row)
            case EvidenceSource.STATEMENT:
                yield _statement(row)
            case EvidenceSource.ANSWER:
                # The attempt shows its first answer; what came after is shown here.
                if row.attempt_id is not None and row.attempt_id not in answered:
                    answered.add(row.attempt_id)
                else:
                    yield _other(row, say("Late answer") if row.attempt_id else say("Decision"))
            case _:
                yield _other(row, say("Report row"))


def _lookup(row: Evidence, number: int) -> TimelineEvent:
    result = row.facts.get("result")
    return TimelineEvent(
        at=row.recorded_at,
        kind=EventKind.LOOKUP,
        anchor=f"lookup-{number}",
        head=say("Look-up {n}", n=number),
        outside=row.summary,
        tone=Tone.BAD if result == "unreadable" else Tone.PLAIN,
        meta=(row.actor_name,),
        raw=dict(row.facts),
    )


def _webhook(row: Evidence) -> TimelineEvent:
    event = row.event
    return TimelineEvent(
        at=row.recorded_at,
        kind=EventKind.WEBHOOK,
        anchor=f"event-{row.event_id}" if event else f"evidence-{row.pk}",
        head=say("Webhook {type}", type=Outside(event.event_type if event else "")),
        outside=row.summary,
        meta=(event.event_id,) if event else (),
        raw=dict(event.payload) if event else dict(row.facts),
    )


def _statement(row: Evidence) -> TimelineEvent:
    facts = row.facts
    reference = str(facts.get("reference", ""))
    return TimelineEvent(
        at=row.recorded_at,
        kind=EventKind.PERSON,
        anchor=f"evidence-{row.pk}",
        head=say("{who} decided", who=Outside(row.actor_name)),
        outside=str(facts.get("note", row.summary)),
        meta=(reference,) if reference else (),
        raw=dict(facts),
    )


def _other(row: Evidence, head: Sentence) -> TimelineEvent:
    return TimelineEvent(
        at=row.recorded_at,
        kind=EventKind.ATTEMPT,
        anchor=f"evidence-{row.pk}",
        head=head,
        outside=row.summary,
        meta=(row.actor_name,),
        raw=dict(row.facts),
    )


def _quiet_webhooks(dossier: Dossier) -> Iterator[TimelineEvent]:
    """Events about this operation that told nothing new."""
    spoken = {row.event_id for row in dossier.evidence if row.event_id}
    for row in dossier.events:
        if row.pk not in spoken:
            yield _quiet_webhook(row)


def _quiet_webhook(row: WebhookEvent) -> TimelineEvent:
    return TimelineEvent(
        at=row.handled_at or row.received_at,
        kind=EventKind.WEBHOOK,
        anchor=f"event-{row.pk}",
        head=say("Webhook {type}", type=Outside(row.event_type)),
        text=say("Told nothing new.")
        if row.handling == Handling.NO_CHANGE
        else Sentence(f"{Handling(row.handling).label}."),
        meta=(row.event_id,),
        raw=dict(row.payload),
    )


_PEOPLE_ACTIONS = {
    "proposed": "{who} proposed a closing",
    "proposal_rejected": "{who} disagreed with the proposal",
    "attention_cleared": "{who} cleared a flag",
    "attention_raised": "A flag was raised",
}
_BECAME = {
    Status.OPEN: "Opened",
    Status.PROCESSING: "Became processing",
    Status.UNKNOWN: "Became unknown",
    Status.SUCCEEDED: "Settled as succeeded",
    Status.FAILED: "Settled as failed",
}


def _audit(row: AuditEntry) -> TimelineEvent | None:
    """The changes of an operation. Its opening is told by its first request already."""
    before, after = row.before.get("status"), row.after.get("status")
    if row.action in _PEOPLE_ACTIONS:
        head = Sentence(_PEOPLE_ACTIONS[row.action], {"who": Outside(row.actor_name)})
        kind = EventKind.PERSON if row.actor_kind == "person" else EventKind.STATUS
    elif before != after and before is not None and after is not None:
        head, kind = Sentence(_BECAME[Status(after)]), EventKind.STATUS
    else:
        return None
    return TimelineEvent(
        at=row.at,
        kind=kind,
        anchor=f"audit-{row.number}",
        head=head,
        outside=row.reason,
        tone=Tone.UNKNOWN if kind is EventKind.STATUS and after == Status.UNKNOWN else Tone.PLAIN,
        meta=(row.actor_name,),
        raw={"action": row.action, "before": row.before, "after": row.after},
    )
