"""Believing: what a refund that claims an operation changes there, through the one door.

In the caller's transaction, which holds the operation's lock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from operations.domain.answers import RefundFacts
from operations.domain.contradiction import (
    Contradiction,
    against_the_outcome,
    other_owner,
    other_terms,
    second_refund,
    unlike_what_was_kept,
)
from operations.domain.matching import differences, is_hearsay
from operations.domain.refund_state import (
    counts_as_refunded,
    fact_of,
    is_doubtful,
    known_status,
)
from operations.domain.statuses import UNRESOLVED, Attention, Fact, Status, transition
from operations.models import (
    Evidence,
    EvidenceSource,
    Flag,
    Operation,
    ProviderRefund,
    RefundReport,
)
from operations.services.learning import Learned
from operations.services.seeing import see_refund
from operations.services.settling import raise_attention, take_fact, write_evidence


class Taken(StrEnum):
    """What believing a refund came to."""

    CHANGED = "changed"
    NOTHING_NEW = "nothing_new"
    DOUBTFUL = "doubtful"
    UNDECIDED = "undecided"
    MISMATCH = "mismatch"
    SECOND_REFUND = "second_refund"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """A refund as it was told, for the operation that it claims. `evidence`: written already."""

    operation: Operation
    refund: RefundFacts
    learned: Learned
    now: datetime
    evidence: Evidence | None

    def proof(self) -> Evidence:
        """The evidence that this report is."""
        return self.evidence or write_evidence(
            self.operation, self.learned, now=self.now, refund=self.refund
        )

    def ask_for_a_person(self, contradiction: Contradiction) -> bool:
        """Raise the flag; tells whether the fact was new."""
        return raise_attention(
            self.operation,
            contradiction,
            learned=self.learned,
            now=self.now,
            evidence=self.evidence,
            refund=self.refund,
        )

    def against(self, attention: Attention, reported: str) -> Contradiction:
        """The refund in this status against how the operation stands."""
        return against_the_outcome(
            attention,
            status=Status(self.operation.status),
            own_refund=self.operation.provider_object_id,
            terms=self.operation.terms(),
            refund=self.refund,
            reported=reported,
        )


def take_refund(
    operation: Operation,
    refund: RefundFacts,
    *,
    learned: Learned,
    now: datetime,
    evidence: Evidence | None = None,
) -> Taken:
    """Believe a refund that claims this operation, after comparing its fields.

    A difference is a mismatch and never a change; a second refund of one operation is shown and
    never taken for the first. Evidence is written only when the refund tells something new,
    unless the caller has written it already.
    """
    wrong = differences(operation.terms(), refund)
    # A mark and an amount can be copied; the payment is asked for before it is believed.
    must_be_asked_for = _is_hearsay(operation, refund, learned)
    seen = see_refund(
        operation.account,
        refund,
        operation=None if wrong or must_be_asked_for else operation,
        learned=learned,
        now=now,
    )
    report = _Report(
        operation=operation, refund=refund, learned=learned, now=now, evidence=evidence
    )
    if wrong:
        report.ask_for_a_person(other_terms(refund, wrong))
        return Taken.MISMATCH
    if must_be_asked_for:
        write_evidence(operation, learned, now=now, refund=refund)
        return Taken.UNDECIDED
    return _take_own(report, seen)


def _take_own(report: _Report, seen: ProviderRefund) -> Taken:
    """A refund whose fields fit, unless it is another's or the second one; `seen` as kept."""
    operation, refund = report.operation, report.refund
    if seen.operation_id != operation.pk:
        report.ask_for_a_person(_why_not_ours(operation, refund, seen))
        return Taken.MISMATCH
    if operation.provider_object_id not in ("", refund.id):
        if counts_as_refunded(seen.status):
            own, terms = operation.provider_object_id, operation.terms()
            report.ask_for_a_person(second_refund(own_refund=own, terms=terms, refund=refund))
        return Taken.SECOND_REFUND
    fact = fact_of(seen.status) if known_status(refund.status) else None
    if fact is None:
        # A status that the provider added since decides nothing, and is shown to people.
        report.proof()
        return Taken.UNDECIDED
    told_at = report.learned.observed_at
    if is_doubtful(seen.status, seen.status_since, refund.status, told_at):
        return _take_doubtful(report, seen, fact)
    return _take_status(report, seen.status, fact)


def _take_doubtful(report: _Report, seen: ProviderRefund, fact: Fact) -> Taken:
    """A refund that is known as failed is reported as if it had not, no earlier than that.

    The provider is asked. When this is its answer, a person has to see both; the state that is
    kept stays, and settles nothing that it has not settled before.
    """
    if report.learned.source == EvidenceSource.LOOKUP:
        if report.operation.status == Status.FAILED:
            _take_status(report, seen.status, fact)
        denied = report.against(Attention.CONFLICT, report.refund.status)
        return Taken.CHANGED if report.ask_for_a_person(denied) else Taken.NOTHING_NEW
    if report.operation.status in UNRESOLVED:
        report.proof()
        return Taken.UNDECIDED
    taken = _take_status(report, seen.status, fact)
    return Taken.DOUBTFUL if taken is Taken.NOTHING_NEW else taken


def _take_status(report: _Report, status: str, fact: Fact) -> Taken:
    """Let the state that is kept of the refund change the operation, if it is news."""
    operation = report.operation
    fields = _fields_of(operation, report.refund, status, fact)
    contradiction = _new_contradiction(report, fact, status)
    if contradiction is None and not _is_news(operation, fact, fields):
        return Taken.NOTHING_NEW
    take_fact(
        operation,
        fact,
        learned=report.learned,
        now=report.now,
        evidence=report.proof(),
        contradiction=contradiction,
        **fields,
    )
    return Taken.CHANGED


def is_proven(operation: Operation, refund: RefundFacts, *, learned: Learned) -> bool:
    """Whether a refund that names this operation is believed to be its own."""
    return not differences(operation.terms(), refund) and not _is_hearsay(
        operation, refund, learned
    )


#: What was written down elsewhere, and not shown when this very payment was asked for.
_HEARSAY = frozenset([EvidenceSource.WEBHOOK, EvidenceSource.REPORT_ROW])
#: What the provider itself said to us, signed or over its API.
_BY_THE_PROVIDER = (EvidenceSource.ANSWER, EvidenceSource.WEBHOOK, EvidenceSource.LOOKUP)


def _is_hearsay(operation: Operation, refund: RefundFacts, learned: Learned) -> bool:
    """Whether a refund that was told of elsewhere has to be asked for before it is believed.

    An event shows the payment, or its refund is known to be the operation's. A file is anybody's:
    of an operation that is not settled it must name a refund that is the operation's already, by
    what the provider told us; a mark in a file ties nothing.
    """
    own = operation.provider_object_id
    if learned.source not in _HEARSAY or refund.id == own:
        return False
    is_borne_out = True
    if learned.source == EvidenceSource.REPORT_ROW and operation.status in UNRESOLVED:
        known = learned.is_borne_out
        is_borne_out = _was_told_of(operation, refund) if known is None else known
    return is_hearsay(operation.terms(), refund, own_refund=own, is_borne_out=is_borne_out)


def _was_told_of(operation: Operation, refund: RefundFacts) -> bool:
    return RefundReport.objects.filter(
        refund__account=operation.account_id,
        refund__provider_object_id=refund.id,
        refund__operation=operation,
        source__in=_BY_THE_PROVIDER,
    ).exists()


def _why_not_ours(operation: Operation, refund: RefundFacts, seen: ProviderRefund) -> Contradiction:
    """Another operation has it, or what was kept of it before is unlike this report."""
    if seen.operation_id is None:
        return unlike_what_was_kept(refund, seen.as_facts())
    return other_owner(refund, operation=str(operation.pk), owner=str(seen.operation_id))


def _fields_of(
    operation: Operation, refund: RefundFacts, status: str, fact: Fact
) -> dict[str, Any]:
    """What a refund in this status fills in beside the status."""
    fields: dict[str, Any] = {
        "provider_object_id": refund.id,
        "provider_status": status,
    }
    if fact is Fact.PROVIDER_PENDING or operation.status == Status.FAILED:
        # What an operation failed of stays as it was written; what the provider says is beside it.
        return fields
    if operation.status in UNRESOLVED:
        fields["next_check_at"] = None
    if fact is Fact.PROVIDER_FAILED:
        fields["failure_code"] = status
        fields["failure_message"] = refund.failure_reason or operation.failure_message
    return fields


def _new_contradiction(report: _Report, fact: Fact, reported: str) -> Contradiction | None:
    """The contradiction that this fact brings to a settled operation, if it is a new one."""
    attention = transition(Status(report.operation.status), fact).attention
    if attention is None:
        return None
    found = report.against(attention, reported)
    return None if Flag.is_known(report.operation, found) else found


def _is_news(operation: Operation, fact: Fact, fields: Mapping[str, Any]) -> bool:
    if transition(Status(operation.status), fact).to != operation.status:
        return True
    return any(getattr(operation, name) != value for name, value in fields.items())
