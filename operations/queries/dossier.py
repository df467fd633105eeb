"""Everything about one operation, read once, and the facts that explanations are made from."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from operations.domain.advice import Situation
from operations.domain.answers import AnswerKind, RefundFacts
from operations.domain.classify import Doubt, Outcome
from operations.domain.known import Known, LookedUp, Sent, Stated, Told
from operations.domain.matching import Comparison, compare, our_mark
from operations.domain.statuses import Attention, Status, UnknownReason
from operations.models import (
    Attempt,
    AuditEntry,
    EventHandling,
    Evidence,
    EvidenceSource,
    Flag,
    Note,
    Operation,
    Proposal,
    ProviderRefund,
    Request,
)
from operations.models.audit import chain_of
from operations.models.proposal import ProposalState
from operations.queries.evidence import anchor_of, refunds_named


@dataclass(frozen=True, kw_only=True)
class Dossier:
    """One operation with all that belongs to it, each list oldest first.

    `refunds` are all refunds seen on the payment, ours or not; `siblings` the other operations
    on it.
    """

    operation: Operation
    requests: list[Request]
    attempts: list[Attempt]
    evidence: list[Evidence]
    events: list[EventHandling]
    audit: list[AuditEntry]
    refunds: list[ProviderRefund]
    siblings: list[Operation]
    proposals: list[Proposal]
    flags: list[Flag]
    notes: list[Note]

    @property
    def waiting(self) -> Proposal | None:
        """The proposal that waits for a second person."""
        return next((row for row in self.proposals if row.state == ProposalState.WAITING), None)

    @property
    def lookups(self) -> list[Evidence]:
        """The look-ups, numbered by their place."""
        return [row for row in self.evidence if row.source == EvidenceSource.LOOKUP]

    @property
    def approved(self) -> Proposal | None:
        """The newest proposal that a second person agreed to."""
        return next(
            (row for row in reversed(self.proposals) if row.state == ProposalState.APPROVED), None
        )

    @property
    def statements(self) -> list[Evidence]:
        """What people found."""
        return [row for row in self.evidence if row.source == EvidenceSource.STATEMENT]

    @property
    def status_since(self) -> datetime:
        """When the operation took the status that it has now."""
        since = self.operation.created_at
        for entry in self.audit:
            if entry.before.get("status") != entry.after.get("status"):
                since = entry.at
        return since

    @property
    def seen(self) -> str:
        """What a page made from this shows, to tell later what is new since."""
        audit = self.audit[-1].number if self.audit else 0
        return f"{audit}.{max((row.pk for row in self.evidence), default=0)}"


def read_dossier(operation_id: UUID) -> Dossier | None:
    """Read an operation with all that belongs to it, or None when there is none."""
    operation = (
        Operation.objects.select_related("account", "payment").filter(pk=operation_id).first()
    )
    if operation is None:
        return None
    return Dossier(
        operation=operation,
        requests=list(operation.requests.select_related("api_key").order_by("received_at", "pk")),
        attempts=list(operation.attempts.order_by("number")),
        evidence=list(
            operation.evidence.select_related("event")
            .defer("event__raw")
            .order_by("recorded_at", "pk")
        ),
        events=list(
            operation.event_handlings.select_related("event")
            .defer("event__raw")
            .order_by("handled_at", "pk")
        ),
        audit=list(AuditEntry.objects.filter(chain=chain_of(operation.pk)).order_by("number")),
        refunds=list(
            ProviderRefund.objects.filter(
                account=operation.account, charge=operation.payment.charge
            ).order_by("provider_created_at", "pk")
        ),
        siblings=list(
            Operation.objects.filter(payment=operation.payment)
            .exclude(pk=operation.pk)
            .order_by("created_at", "pk")
        ),
        proposals=list(operation.proposals.order_by("proposed_at", "pk")),
        notes=list(operation.notes.order_by("written_at", "pk")),
        flags=list(operation.flags.select_related("evidence").order_by("raised_at", "pk")),
    )


def provider_label(name: str) -> str:
    """A provider's name as people write it."""
    return name.capitalize()


def known_facts(dossier: Dossier, now: datetime) -> Known:
    """What the sentences about this operation are made from."""
    operation = dossier.operation
    return Known(
        provider=provider_label(operation.account.provider),
        money=operation.money,
        status=Status(operation.status),
        now=now,
        unknown_reason=UnknownReason(operation.unknown_reason)
        if operation.unknown_reason
        else None,
        attention=flags(operation),
        provider_object_id=operation.provider_object_id,
        failure_message=operation.failure_message,
        key_window_closes_at=operation.key_window_closes_at,
        sends=[_sent(row) for row in dossier.attempts],
        lookups=[_looked(number, row) for number, row in enumerate(dossier.lookups, 1)],
        events=[
            Told(
                at=row.recorded_at,
                refund_id=row.provider_object_id,
                refund_status=row.provider_status,
                anchor=f"event-{row.event_id}" if row.event_id else f"evidence-{row.pk}",
            )
            for row in dossier.evidence
            if row.source == EvidenceSource.WEBHOOK and row.provider_object_id
        ],
        statements=[
            Stated(at=row.recorded_at, by=row.actor_name, anchor=f"evidence-{row.pk}")
            for row in dossier.statements
        ],
        raised_by={
            Attention(row.attention): anchor_of(
                row.evidence, attempts=dossier.attempts, lookups=dossier.lookups
            )
            for row in dossier.flags
            if row.cleared_at is None
        },
    )


def situation(dossier: Dossier, now: datetime) -> Situation:
    """What the advice about this operation rests on."""
    operation = dossier.operation
    lookups = dossier.lookups
    return Situation(
        status=Status(operation.status),
        attention=flags(operation),
        proposal_waits=dossier.waiting is not None,
        window_closed=window_is_closed(operation, now),
        last_lookup=lookup_result(lookups[-1].facts) if lookups else "",
        lookups_made=operation.lookups_made,
        absence_holds=bool(lookups) and absence_holds(lookups[-1].facts),
        next_check_at=operation.next_check_at,
        now=now,
    )


def flags(operation: Operation) -> frozenset[Attention]:
    """The flags that are set."""
    return frozenset(Attention(flag) for flag in operation.attention)


def window_is_closed(operation: Operation, now: datetime) -> bool:
    """Whether the key can't be relied on any more: its time is over, or none was ever stated."""
    closes = operation.key_window_closes_at
    return operation.status == Status.UNKNOWN if closes is None else closes <= now


def lookup_result(facts: Mapping[str, Any]) -> str:
    """The result of a look-up; `unproven` where the list that was read can't show an absence.

    Not every provider's can, and none that lacks some of what the provider says is refunded.
    """
    result = str(facts.get("result", ""))
    hides = facts.get("proves_absence") is False or facts.get("total_explained") is False
    return "unproven" if result == "absent" and hides else result


def absence_holds(facts: Mapping[str, Any]) -> bool:
    """Whether a look-up that found nothing lacked nothing that can be checked, when it was made."""
    return facts.get("lacks") == []


@dataclass(frozen=True, kw_only=True)
class Match:
    """A refund held against what was sent. `proven`: it is this operation's own.

    `claims`: it names this operation but differs. `belongs_to` is another operation that has
    proven it to be its own.
    """

    refund: RefundFacts
    rows: tuple[Comparison, ...]
    proven: bool
    claims: bool = False
    belongs_to: UUID | None = None


def nearest_match(dossier: Dossier) -> Match | None:
    """The operation's own refund, or one that claims to be, or the nearest, or None."""
    operation = dossier.operation
    own = [row for row in dossier.refunds if _is_own(operation, row)]
    if own:
        return _match(operation, own[0].as_facts(), proven=True)
    claiming = [row for row in dossier.refunds if _claims(operation, row)]
    if claiming:
        return _match(operation, claiming[-1].as_facts(), claims=True)
    kept = {row.provider_object_id for row in dossier.refunds}
    claims = [
        refund for refund in refunds_named(operation, dossier.evidence) if refund.id not in kept
    ]
    if claims:
        return _match(operation, claims[-1], claims=True)
    if not dossier.refunds:
        return None
    nearest = min(dossier.refunds, key=lambda row: _distance(operation, row))
    return _match(operation, nearest.as_facts(), belongs_to=nearest.operation_id)


def _claims(operation: Operation, row: ProviderRefund) -> bool:
    """Whether a refund that is nobody's names this operation."""
    mark = our_mark(row.metadata)
    return (
        row.operation_id is None
        and mark is not None
        and (mark.operation_id, mark.environment) == (operation.pk, operation.environment)
    )


def _match(
    operation: Operation,
    refund: RefundFacts,
    *,
    proven: bool = False,
    claims: bool = False,
    belongs_to: UUID | None = None,
) -> Match:
    return Match(
        refund=refund,
        rows=compare(operation.terms(), refund),
        proven=proven,
        claims=claims,
        belongs_to=belongs_to,
    )


def _distance(operation: Operation, row: ProviderRefund) -> tuple[bool, bool, float]:
    """How far a refund on the payment is from ours: owned by another, other terms, other time."""
    created = row.provider_created_at or row.first_seen_at
    return (
        row.operation_id is not None,
        (row.amount, row.currency) != (operation.amount, operation.currency),
        abs((created - (operation.first_sent_at or operation.created_at)).total_seconds()),
    )


def _is_own(operation: Operation, row: ProviderRefund) -> bool:
    return (
        row.provider_object_id == operation.provider_object_id or row.operation_id == operation.pk
    )


def _sent(row: Attempt) -> Sent:
    refund: Any = row.refund or {}
    return Sent(
        number=row.number,
        at=row.started_at,
        outcome=Outcome(row.outcome) if row.outcome else None,
        doubt=Doubt(row.doubt),
        kind=AnswerKind(row.answer_kind) if row.answer_kind else None,
        http_status=row.http_status,
        refund_id=str(refund.get("id", "")),
    )


def _looked(number: int, row: Evidence) -> LookedUp:
    return LookedUp(
        number=number,
        at=row.observed_at,
        result=lookup_result(row.facts),
        refund_id=row.provider_object_id,
        others=int(row.facts.get("refunds_seen_count") or 0),
    )
