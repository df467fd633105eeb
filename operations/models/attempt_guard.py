"""What the database holds an attempt to: begun as its operation allows, and written once."""

from operations.domain.answers import AnswerKind
from operations.domain.classify import Doubt, Outcome
from operations.models.guards import Guard, Rule, check, frozen, known

_SHAPE = (
    check("attempt_outcome_known", known("outcome", ["", *sorted(Outcome)])),
    check("attempt_doubt_known", known("doubt", sorted(Doubt))),
    check("attempt_answer_known", known("answer_kind", ["", *sorted(AnswerKind)])),
    # In flight nothing is known; once it is over, when and how it ended.
    check(
        "attempt_finished_is_whole",
        """CASE NEW.outcome WHEN '' THEN
            NEW.doubt = '' AND NEW.attention = '' AND NEW.answer_kind = ''
            AND NEW.finished_at IS NULL AND NEW.duration_ms IS NULL AND NEW.http_status IS NULL
            AND NEW.provider_request_id = '' AND NOT NEW.replayed AND NEW.should_retry IS NULL
            AND NEW.retry_after_s IS NULL AND NEW.error_type = '' AND NEW.error_code = ''
            AND NEW.message = '' AND NEW.body IS NULL AND NEW.refund IS NULL
        ELSE NEW.answer_kind <> '' AND NEW.finished_at IS NOT NULL END""",
    ),
    # An accepted attempt keeps the refund that the decision rests on.
    check(
        "attempt_accepted_keeps_the_refund",
        f"NEW.outcome <> '{Outcome.ACCEPTED}' OR NEW.refund IS NOT NULL",
    ),
)

_BEGUN = (
    Rule(name="attempt_starts_in_flight", when="NEW.outcome <> ''"),
    *_SHAPE,
    # The operation, locked here, is open and leased to the sender, the attempt is its next one
    # and carries its one key and its frozen body, and a repetition begins before the key's window
    # closes.
    Rule(
        name="attempt_fits_its_operation",
        when="true",
        query="""(
            SELECT parent.status <> 'open'
                OR parent.lease_owner = ''
                OR parent.lease_owner <> NEW.fence
                OR parent.attempts_made <> NEW.number
                OR parent.idempotency_key <> NEW.idempotency_key
                OR parent.parameters <> NEW.parameters
                OR (NEW.number > 1 AND NEW.started_at >= parent.key_window_closes_at)
            FROM operations_operation AS parent
            WHERE parent.id = NEW.operation_id FOR NO KEY UPDATE)""",
    ),
)

_FINISHED = (
    Rule(name="attempt_written_once", when="OLD.outcome <> ''"),
    frozen(
        "attempt_frozen",
        [
            "id",
            "operation_id",
            "number",
            "idempotency_key",
            "parameters",
            "fence",
            "started_at",
        ],
    ),
    *_SHAPE,
)

ATTEMPT_GUARD = Guard(name="attempt_guard", inserted=_BEGUN, updated=_FINISHED)
