"""The timeline of an operation: requests, attempts, webhooks, look-ups, people, in one order."""

from collections.abc import Iterator

from operations.domain.answers import AnswerKind
from operations.domain.classify import Outcome
from operations.domain.sentences import Outside, Sentence, gettext_noop, say
from operations.domain.statuses import SETTLED, Status
from operations.models import (
    Attempt,
    AuditEntry,
    EventHandling,
    Evidence,
    EvidenceSource,
    Handling,
    Request,
)
from operations.queries.dossier import Dossier, provider_label
from operations.queries.events import EventKind, TimelineEvent, Tone
from operations.queries.evidence import in_words


def timeline(dossier: Dossier) -> list[TimelineEvent]:
    """All events, oldest first."""
    events = [
        *_requests(dossier),
        *(_attempt(dossier, row) for row in dossier.attempts),
        *_evidence(dossier),
        *_quiet_webhooks(dossier),
        *(event for row in dossier.audit if (event := _audit(dossier, row)) is not None),
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
                who=_asker(row),
                money=dossier.operation.money,
                order=Outside(dossier.operation.order_id),
            )
            if place == 0
            else say("{who} asked again. It joined this operation.", who=_asker(row)),
            meta=(row.agent_run_id,) if row.agent_run_id else (),
            raw={
                "tool_call_id": row.tool_call_id,
                "agent_run_id": row.agent_run_id,
                "payment": row.payment_asked,
                "input_hash": row.input_hash,
            },
        )


def _asker(row: Request) -> Outside | Sentence:
    return Outside(row.api_key.name) if row.api_key else say("An operator")


def _attempt(dossier: Dossier, row: Attempt) -> TimelineEvent:
    provider = provider_label(dossier.operation.account.provider)
    tags: list[tuple[str, Tone]] = []
    if row.http_status is not None:
        good = 200 <= row.http_status < 300
        tags.append((f"HTTP {row.http_status}", Tone.GOOD if good else Tone.BAD))
    if row.replayed:
        tags.append((gettext_noop("Replayed"), Tone.PLAIN))
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
    settled = dossier.operation.status in SETTLED
    answered: set[object] = set()
    for row in dossier.evidence:
        match row.source:
            case EvidenceSource.LOOKUP:
                lookups += 1
                yield _lookup(row, lookups, settled=settled)
            case EvidenceSource.WEBHOOK:
                yield _webhook(row, settled=settled)
            case EvidenceSource.STATEMENT:
                yield _statement(row, dossier)
            case EvidenceSource.ANSWER:
                # The attempt shows its first answer; what came after is shown here.
                if row.attempt_id is not None and row.attempt_id not in answered:
                    answered.add(row.attempt_id)
                else:
                    head = say("Late answer") if row.attempt_id else say("Decision")
                    yield _other(row, head, settled=settled)
            case _:
                yield _other(row, say("Report row"), settled=settled)


def _lookup(row: Evidence, number: int, *, settled: bool) -> TimelineEvent:
    result = row.facts.get("result")
    return TimelineEvent(
        at=row.recorded_at,
        kind=EventKind.LOOKUP,
        anchor=f"lookup-{number}",
        head=say("Look-up {n}", n=number),
        text=in_words(row, settled=settled),
        tone=Tone.BAD if result == "unreadable" else Tone.PLAIN,
        meta=(row.actor_name,),
        raw=dict(row.facts),
    )


def _webhook(row: Evidence, *, settled: bool) -> TimelineEvent:
    """It is told from the evidence's own facts: an old event may be gone."""
    event = row.event
    return TimelineEvent(
        at=row.recorded_at,
        kind=EventKind.WEBHOOK,
        anchor=f"event-{row.event_id}" if row.event_id else f"evidence-{row.pk}",
        head=say("Webhook {type}", type=Outside(str(row.facts.get("type", "")))),
        text=in_words(row, settled=settled),
        meta=(str(row.facts["event_id"]),) if "event_id" in row.facts else (),
        raw=dict(event.payload) if event else dict(row.facts),
    )


def _statement(row: Evidence, dossier: Dossier) -> TimelineEvent:
    """A person's finding; of a proposal that was agreed to, with the second person's note."""
    facts = row.facts
    note = Outside(str(facts.get("note", row.summary)))
    second = dossier.approved if facts.get("proposed_by") else None
    reference = str(facts.get("reference", ""))
    return TimelineEvent(
        at=row.recorded_at,
        kind=EventKind.PERSON,
        anchor=f"evidence-{row.pk}",
        head=say("{who} decided", who=Outside(row.actor_name)),
        text=say("{note}", note=note)
        if second is None
        else say(
            "{first}: {note} {second}: {answer}",
            first=Outside(second.proposed_by_name),
            note=note,
            second=Outside(second.decided_by_name),
            answer=Outside(second.decision_note),
        ),
        meta=(reference,) if reference else (),
        raw=dict(facts),
    )


def _other(row: Evidence, head: Sentence, *, settled: bool) -> TimelineEvent:
    return TimelineEvent(
        at=row.recorded_at,
        kind=EventKind.ATTEMPT,
        anchor=f"evidence-{row.pk}",
        head=head,
        text=in_words(row, settled=settled),
        meta=(row.actor_name,),
        raw=dict(row.facts),
    )


def _quiet_webhooks(dossier: Dossier) -> Iterator[TimelineEvent]:
    """Events about this operation that told nothing new."""
    spoken = {row.event_id for row in dossier.evidence if row.event_id}
    for row in dossier.events:
        if row.event_id not in spoken:
            yield _quiet_webhook(row)


_HANDLED = {
    Handling.WAITING: gettext_noop("It waits to be handled."),
    Handling.APPLIED: gettext_noop("It was matched with an operation."),
    Handling.NO_CHANGE: gettext_noop("Told nothing new."),
    Handling.NEEDS_LOOKUP: gettext_noop("Matched by its request's key. A look-up was asked for."),
    Handling.UNMATCHED: gettext_noop("It carries our mark, but there is no such operation yet."),
    Handling.NOT_OURS: gettext_noop("It is not ours."),
    Handling.OTHER_ENVIRONMENT: gettext_noop("It belongs to another environment."),
    Handling.WRONG_MODE: gettext_noop("It belongs to the other mode (live or test)."),
    Handling.MISMATCH: gettext_noop("It names an operation, but differs from what was sent."),
    Handling.IGNORED: gettext_noop("There is nothing to do for this type."),
}


def _quiet_webhook(row: EventHandling) -> TimelineEvent:
    return TimelineEvent(
        at=row.handled_at,
        kind=EventKind.WEBHOOK,
        anchor=f"event-{row.event_id}",
        head=say("Webhook {type}", type=Outside(row.event_type)),
        text=say(_HANDLED[Handling(row.handling)]),
        meta=(row.provider_event_id,),
        raw=dict(row.event.payload) if row.event else {},
    )


_PEOPLE_ACTIONS = {
    "proposed": gettext_noop("{who} proposed a closing"),
    "proposal_rejected": gettext_noop("{who} disagreed with the proposal"),
    "reopening_proposed": gettext_noop("{who} proposed to reopen it"),
    "noted": gettext_noop("{who} wrote a note"),
    "reissue_asked": gettext_noop("{who} asked for a new refund in its place"),
    "reissue_refused": gettext_noop("No new refund was opened in its place"),
    "reissued": gettext_noop("A new refund was opened in its place"),
    "attention_cleared": gettext_noop("{who} cleared a flag"),
    "attention_raised": gettext_noop("A flag was raised"),
}
_BECAME = {
    Status.OPEN: gettext_noop("Opened"),
    Status.PROCESSING: gettext_noop("Became processing"),
    Status.UNKNOWN: gettext_noop("Became unknown"),
    Status.SUCCEEDED: gettext_noop("Settled as succeeded"),
    Status.FAILED: gettext_noop("Settled as failed"),
}
_SETTLED = {Status.SUCCEEDED: EventKind.SUCCEEDED, Status.FAILED: EventKind.FAILED}


def _audit(dossier: Dossier, row: AuditEntry) -> TimelineEvent | None:
    """The changes of an operation. Its opening is told by its first request already."""
    before, after = row.before.get("status"), row.after.get("status")
    if row.action in _PEOPLE_ACTIONS:
        head = Sentence(_PEOPLE_ACTIONS[row.action], {"who": Outside(row.actor_name)})
        kind = EventKind.PERSON if row.actor_kind == "person" else EventKind.STATUS
    elif before != after and before is not None and after is not None:
        head = Sentence(_BECAME[Status(after)])
        kind = _SETTLED.get(Status(after), EventKind.STATUS)
    elif row.before.get("attention", []) != row.after.get("attention", []) and row.before:
        head, kind = Sentence(_PEOPLE_ACTIONS["attention_raised"]), EventKind.STATUS
    else:
        return None
    flags = set(row.before.get("attention", [])) ^ set(row.after.get("attention", []))
    moved = sorted(str(flag) for flag in flags)
    evidence = next((e for e in dossier.evidence if str(e.pk) == row.evidence_id), None)
    settled = dossier.operation.status in SETTLED
    return TimelineEvent(
        at=row.at,
        kind=kind,
        anchor=f"audit-{row.number}",
        head=head,
        text=in_words(evidence, settled=settled) if evidence else None,
        outside="" if evidence else row.reason,
        tags=tuple((flag.replace("_", " ").capitalize(), Tone.PLAIN) for flag in moved),
        tone=Tone.UNKNOWN if kind is EventKind.STATUS and after == Status.UNKNOWN else Tone.PLAIN,
        meta=(row.actor_name,),
        raw={"action": row.action, "before": row.before, "after": row.after},
    )
