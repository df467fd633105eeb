"""Answers: what came back from a send, saved with its attempt and said in words."""

from datetime import datetime

from operations.domain.answers import Answer, AnswerKind, RefundFacts
from operations.domain.audit import Actor
from operations.domain.classify import Classification
from operations.models import Attempt, EvidenceSource, collecting
from operations.services.learning import Learned

#: The fields of an attempt that are written when it is over.
_ANSWER = (
    "outcome",
    "doubt",
    "attention",
    "answer_kind",
    "finished_at",
    "duration_ms",
    "http_status",
    "provider_request_id",
    "replayed",
    "should_retry",
    "retry_after_s",
    "error_type",
    "error_code",
    "message",
    "body",
    "refund",
)


def save_answer(attempt: Attempt, answer: Answer, reading: Classification, now: datetime) -> None:
    """The one write that an attempt gets after it was sent."""
    attempt.outcome = reading.outcome
    attempt.doubt = reading.doubt
    attempt.attention = reading.attention or ""
    attempt.answer_kind = answer.kind
    attempt.finished_at = now
    attempt.duration_ms = answer.duration_ms
    attempt.http_status = answer.http_status
    attempt.provider_request_id = answer.request_id
    attempt.replayed = answer.replayed
    attempt.should_retry = answer.should_retry
    attempt.retry_after_s = answer.retry_after_s
    attempt.error_type = answer.error_type[:100]
    attempt.error_code = answer.error_code[:100]
    attempt.message = answer.message[:500]
    attempt.body = answer.body
    attempt.refund = _as_json(reading.refund) if reading.refund else None
    collecting.update(attempt, _ANSWER)


def _as_json(refund: RefundFacts) -> dict[str, object]:
    """All fields of a refund; `asdict` would copy each value."""
    fields = {name: getattr(refund, name) for name in RefundFacts.__slots__}
    return {**fields, "metadata": dict(refund.metadata)}


def learned_from(
    attempt: Attempt,
    answer: Answer,
    reading: Classification,
    actor: Actor,
    now: datetime,
) -> Learned:
    return Learned(
        source=EvidenceSource.ANSWER,
        summary=answer_in_words(answer, reading),
        actor=actor,
        observed_at=now,
        attempt=attempt,
        facts={
            "attempt": attempt.number,
            "outcome": reading.outcome,
            "doubt": reading.doubt,
            "http_status": answer.http_status,
            "replayed": answer.replayed,
            "request_id": answer.request_id,
            "body": answer.body,
        },
    )


def answer_in_words(answer: Answer, reading: Classification) -> str:
    """One sentence on what came back, without a word on what it means for the money."""
    match answer.kind:
        case AnswerKind.NOT_SENT:
            return "No connection to the provider was made; nothing was sent."
        case AnswerKind.CONNECTION_LOST:
            return f"The connection ended before an answer came. {answer.message}".strip()
        case AnswerKind.INTERRUPTED:
            return answer.message
        case AnswerKind.UNREADABLE:
            return f"An answer came (HTTP {answer.http_status}) that cannot be read as a refund."
        case AnswerKind.RESPONSE:
            pass
    if reading.refund is not None:
        return f"The provider answered with refund {reading.refund.id}: {reading.refund.status}."
    said = answer.message or answer.error_code or answer.error_type or "no message"
    replay = ", a repetition of its first answer" if answer.replayed else ""
    return f"The provider answered HTTP {answer.http_status}{replay}: {said}"
