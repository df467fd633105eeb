"""Weighing: what a person's decision rests on, looked at before it settles anything."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from operations.domain.absence import Grade
from operations.domain.answers import RefundFacts
from operations.domain.closure import (
    Absence,
    ClosingOutcome,
    EvidenceKind,
    SecondPersonReason,
    absence_is_fresh,
    second_person_reasons,
)
from operations.domain.differing import what_differs
from operations.domain.matching import our_mark
from operations.domain.refund_state import (
    RefundStatus,
    counts_as_refunded,
    known_status,
)
from operations.domain.sentences import Outside, Refusal, Sentence, say
from operations.models import (
    EvidenceSource,
    Operation,
    Policy,
    PolicyName,
    RateBucket,
)
from operations.providers import ReadFailed, RefundNotFound
from operations.queries.absence import grade_of, lookups_of
from operations.services.engine import Engine

_IS_ID = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, kw_only=True)
class BulkPart:
    """The run of many that a decision is a part of, and the second person who agreed to it."""

    run: int
    approved_by: str = ""
    approval_note: str = ""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a person found. `revision` is the one their page showed, in the form `form_token`."""

    outcome: ClosingOutcome
    evidence_kind: EvidenceKind
    evidence_reference: str
    note: str
    revision: int
    form_token: str = ""
    part: BulkPart | None = None


class StaleView(Exception):
    """The operation moved on since the page was made; nothing was changed."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        super().__init__("The operation has changed since this page was made.")


class ClosingRefused(Refusal):
    """This closing can't be done; nothing was changed. `field` names what to mend, "" for none."""


class Overtaken(ClosingRefused):
    """Somebody was faster, or works on it; nothing was changed. The page did not show it yet."""


def above_limit(engine: Engine, operation: Operation) -> bool:
    """Whether the amount is above what one person decides, as any is that has no limit."""
    limit = engine.second_person_above.get(operation.currency)
    return limit is None or operation.amount > limit


def why_second_person(
    engine: Engine,
    operation: Operation,
    outcome: ClosingOutcome,
    now: datetime,
    *,
    absence_alone: bool = False,
) -> tuple[SecondPersonReason, ...]:
    """Why closing it this way wants a second person; empty when one is enough."""
    contract = engine.provider(operation.account).contract
    has_live_refund = any(counts_as_refunded(row.status) for row in operation.refunds.all())
    return second_person_reasons(
        outcome=outcome,
        money=operation.money,
        limits=engine.second_person_above,
        has_contradiction=bool(operation.attention)
        or (outcome is ClosingOutcome.FAILED and has_live_refund),
        fresh_absence=absence_is_fresh(
            newest_absence(operation),
            now=now,
            conclusive_after_s=contract.lookup_conclusive_after_s,
        ),
        absence_alone=absence_alone,
    )


def newest_absence(operation: Operation) -> Absence | None:
    """The newest look-up, if it did not find the refund."""
    newest = (
        operation.evidence.filter(source=EvidenceSource.LOOKUP).order_by("-recorded_at").first()
    )
    if newest is None or newest.facts.get("result") not in ("absent", "incomplete"):
        return None
    last_sent_at = operation.last_sent_at
    return Absence(
        looked_at=newest.observed_at,
        complete=newest.facts.get("complete") is True,
        explained=newest.facts.get("total_explained") is not False,
        # From the last send there is, which may be later than the look-up.
        seconds_after_send=(newest.observed_at - last_sent_at).total_seconds()
        if last_sent_at
        else None,
    )


def refuse_mere_absence(engine: Engine, operation: Operation, decision: Decision) -> None:
    """Absence alone closes nothing unless an administrator allowed it and it is worth that."""
    if decision.evidence_kind is not EvidenceKind.ABSENT_IN_LOOKUP:
        return
    if not Policy.is_on(PolicyName.CLOSE_BY_ABSENCE):
        raise ClosingRefused(
            say("An absence alone closes nothing here. Name other evidence."), "kind"
        )
    worth = absence_grade(engine, operation)
    if not worth.suggests_failed:
        raise ClosingRefused(
            say("The look-ups do not show enough of an absence yet. Look up again later."),
            "kind",
        )


def absence_grade(engine: Engine, operation: Operation) -> Grade:
    """What it is worth that look-ups did not find the refund."""
    contract = engine.provider(operation.account).contract
    return grade_of(
        operation,
        lookups_of(operation),
        conclusive_after_s=contract.lookup_conclusive_after_s,
    )


def checked_refund(engine: Engine, operation_id: UUID, decision: Decision) -> RefundFacts | None:
    """For `succeeded`: the refund a person names, read live from the provider and compared.

    Runs before the transaction, because it calls the provider.
    """
    if not decision.note.strip():
        raise ClosingRefused(say("Write a note: what did you find, and where?"), "note")
    if decision.outcome is ClosingOutcome.FAILED:
        if decision.evidence_kind is not EvidenceKind.ABSENT_IN_LOOKUP and (
            not decision.evidence_reference.strip()
        ):
            raise ClosingRefused(
                say("Name the evidence: a case number or an address."), "reference"
            )
        return None
    operation = Operation.objects.select_related("payment", "account").get(pk=operation_id)
    reference = decision.evidence_reference.strip()
    if not reference:
        raise ClosingRefused(say("Give the provider's refund id."), "reference")
    refund = _read_refund(engine, operation, reference)
    _require_fitting(operation, refund)
    return refund


def _read_refund(engine: Engine, operation: Operation, reference: str) -> RefundFacts:
    try:
        return engine.provider(operation.account).read_refund(
            refund_id=reference, account=operation.account.provider_account
        )
    except RefundNotFound:
        raise ClosingRefused(
            say("The provider has no refund {refund} in this account.", refund=Outside(reference)),
            "reference",
        ) from None
    except ReadFailed as error:
        raise ClosingRefused(
            say(
                "The provider can't be read right now, so nothing was closed: {error}",
                error=Outside(str(error)),
            ),
            "reference",
        ) from None


#: How often references that are being typed may be looked up, for all of an account: a second, and
#: at once. Whoever comes later is told at the check.
_TYPED_PER_S, _TYPED_BURST = 1.0, 10.0
_SHORTEST_REFERENCE = 8


class ReferenceResult(StrEnum):
    """What a reference is that somebody types."""

    FITS = "fits"
    REFUSED = "refused"
    NOT_ASKED = "not_asked"


def look_at_reference(
    *, engine: Engine, operation_id: UUID, reference: str
) -> tuple[ReferenceResult, Sentence | None]:
    """Read the refund of this id, without recording anything; and why it does not fit, if so."""
    operation = Operation.objects.select_related("payment", "account").get(pk=operation_id)
    reference = reference.strip()
    if len(reference) < _SHORTEST_REFERENCE or not _IS_ID.fullmatch(reference):
        return ReferenceResult.NOT_ASKED, None
    waits = RateBucket.take(
        account=operation.account,
        kind="typed",
        per_s=_TYPED_PER_S,
        burst=_TYPED_BURST,
        most_s=0.0,
    )
    if waits is None:
        return ReferenceResult.NOT_ASKED, None
    try:
        _require_fitting(operation, _read_refund(engine, operation, reference))
    except ClosingRefused as refusal:
        return ReferenceResult.REFUSED, refusal.sentence
    return ReferenceResult.FITS, None


def _require_fitting(operation: Operation, refund: RefundFacts) -> None:
    refund_id = Outside(refund.id)
    wrong = what_differs(operation.terms(), refund)
    if wrong:
        raise ClosingRefused(
            say(
                "Refund {refund} is another refund. {differences}.",
                refund=refund_id, differences=wrong,
            ),
            "reference",
        )  # fmt: skip
    if known_status(refund.status) is not RefundStatus.SUCCEEDED:
        raise ClosingRefused(
            say(
                "Refund {refund} is {status} at the provider, not succeeded.",
                refund=refund_id, status=Outside(refund.status),
            ),
            "reference",
        )  # fmt: skip
    owner = (
        Operation.objects.filter(account=operation.account, provider_object_id=refund.id)
        .exclude(pk=operation.pk)
        .first()
    )
    mark = our_mark(refund.metadata)
    if owner or (mark and mark.operation_id != operation.pk):
        raise anothers(refund)


def anothers(refund: RefundFacts) -> ClosingRefused:
    """The refusal of a refund that is another operation's."""
    belongs = say("Refund {refund} belongs to another operation.", refund=Outside(refund.id))
    return ClosingRefused(belongs, "reference")
