"""Orphans: a person ties a refund to an operation, or finds that it was made outside."""

from django.db import transaction

from operations.domain.answers import RefundFacts
from operations.domain.audit import Actor
from operations.domain.closure import ClosingOutcome, EvidenceKind, is_closable
from operations.domain.differing import what_differs
from operations.domain.matching import names_the_payment
from operations.domain.orphans import Link
from operations.domain.sentences import Outside, Refusal, say
from operations.domain.statuses import Status
from operations.models import (
    AuditEntry,
    Discrepancy,
    EvidenceSource,
    MadeOutside,
    Operation,
    Payment,
    Proposal,
    ProviderRefund,
)
from operations.providers import ReadFailed, RefundNotFound
from operations.services.believing import Taken, take_refund
from operations.services.claiming import ClaimHeld, refuse_others
from operations.services.closing import close
from operations.services.engine import Engine
from operations.services.learning import Learned
from operations.services.settling import lock, write_evidence
from operations.services.weighing import ClosingRefused, Decision, StaleView


class OrphanRefused(Refusal):
    """This can't be done with the orphan; nothing was changed. `field` names what to mend."""


def link_refund(*, engine: Engine, refund_id: int, link: Link, actor: Actor) -> Proposal | None:
    """Tie a refund to an operation after reading it live and comparing every field.

    An unresolved operation is closed as succeeded by it, with a second person where the rules
    want one (then the proposal is returned). A settled one keeps its outcome: the refund raises
    the flag that it deserves. Raises OrphanRefused, StaleView.
    """
    row = ProviderRefund.objects.select_related("account").get(pk=refund_id)
    operation = (
        Operation.objects.select_related("account", "payment").filter(pk=link.operation_id).first()
    )
    if not link.note.strip():
        raise OrphanRefused(say("Write a note: what shows that they belong together?"), "note")
    if operation is None or operation.account_id != row.account_id:
        raise OrphanRefused(say("There is no such operation in this account."), "operation")
    if row.operation_id is not None:
        raise OrphanRefused(say("This refund belongs to an operation already."))
    if operation.status == Status.OPEN:
        raise OrphanRefused(
            say("This operation is still being sent. Wait until it is not."), "operation"
        )
    if is_closable(Status(operation.status)):
        return _close_by(engine, row, link, actor)
    _tie_to_settled(engine, operation, _read_live(engine, operation, row), link, actor)
    return None


def _close_by(engine: Engine, row: ProviderRefund, link: Link, actor: Actor) -> Proposal | None:
    decision = Decision(
        outcome=ClosingOutcome.SUCCEEDED,
        evidence_kind=EvidenceKind.PROVIDER_REFUND,
        evidence_reference=row.provider_object_id,
        note=link.note,
        revision=link.revision,
    )
    try:
        return close(engine=engine, operation_id=link.operation_id, decision=decision, actor=actor)
    except ClosingRefused as refusal:
        field = "note" if refusal.field == "note" else ""
        raise OrphanRefused(refusal.sentence, field) from refusal


def _read_live(engine: Engine, operation: Operation, row: ProviderRefund) -> RefundFacts:
    try:
        refund = engine.provider(operation.account).read_refund(
            refund_id=row.provider_object_id, account=operation.account.provider_account
        )
    except (ReadFailed, RefundNotFound) as error:
        raise OrphanRefused(
            say("The refund can't be read at the provider now: {error}", error=Outside(str(error)))
        ) from None
    terms = operation.terms()
    wrong = what_differs(terms, refund)
    if wrong:
        raise OrphanRefused(say("It is another refund. {differences}.", differences=wrong))
    if not names_the_payment(terms, refund):
        raise OrphanRefused(say("It is another refund: it names another payment."))
    return refund


@transaction.atomic
def _tie_to_settled(
    engine: Engine, seen: Operation, refund: RefundFacts, link: Link, actor: Actor
) -> None:
    # The payment before the operation, as everywhere.
    Payment.objects.select_for_update(no_key=True).get(pk=seen.payment_id)
    operation = lock(link.operation_id)
    if operation.revision != link.revision:
        raise StaleView(operation)
    now = engine.clock()
    try:
        refuse_others(operation, actor=actor, now=now)
    except ClaimHeld as held:
        raise OrphanRefused(held.sentence) from held
    learned = Learned(
        source=EvidenceSource.STATEMENT,
        summary=f"{actor.name}: {link.note.strip()}",
        actor=actor,
        observed_at=now,
        facts={"kind": "linked", "reference": refund.id, "note": link.note.strip()},
    )
    evidence = write_evidence(operation, learned, now=now, refund=refund)
    before = operation.snapshot()
    taken = take_refund(operation, refund, learned=learned, now=now, evidence=evidence)
    match taken:
        case Taken.MISMATCH:
            raise OrphanRefused(
                say(
                    "This refund was kept with other terms than it has now, "
                    "or as another operation's."
                )
            )
        case Taken.UNDECIDED:
            raise OrphanRefused(
                say("Its status {status} decides nothing yet.", status=Outside(refund.status))
            )
    AuditEntry.append(
        operation_id=operation.pk,
        actor=actor,
        action="refund_linked",
        now=now,
        before=before,
        after=operation.snapshot() | {"linked": refund.id},
        reason=link.note.strip(),
        evidence_id=evidence.pk,
    )


@transaction.atomic
def mark_outside(
    *, engine: Engine, refund_id: int, reason: str, actor: Actor, bulk_run: int | None = None
) -> MadeOutside:
    """Keep that a refund was made by somebody else. It goes on counting against the payment.

    `bulk_run`: the run of many that it is a part of.
    Raises OrphanRefused.
    """
    row = ProviderRefund.objects.select_for_update(no_key=True).get(pk=refund_id)
    if not reason.strip():
        raise OrphanRefused(say("Say how you know that it was made outside."), "reason")
    if row.operation_id is not None:
        raise OrphanRefused(say("This refund belongs to an operation."))
    if MadeOutside.objects.filter(refund=row).exists():
        raise OrphanRefused(say("Somebody found this already."))
    now = engine.clock()
    found = MadeOutside.objects.create(
        refund=row,
        reason=reason.strip(),
        found_by=actor.id,
        found_by_name=actor.name,
        found_at=now,
    )
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action="made_outside",
        now=now,
        before={"refund": row.provider_object_id},
        after={
            "refund": row.provider_object_id,
            "amount": row.amount,
            "currency": row.currency,
            "charge": row.charge,
            **({} if bulk_run is None else {"bulk_run": bulk_run}),
        },
        reason=reason.strip(),
    )
    return found


@transaction.atomic
def close_discrepancy(
    *, engine: Engine, discrepancy_id: int, reason: str, actor: Actor
) -> Discrepancy:
    """A person answers for a total that no known refund explains. Raises OrphanRefused."""
    row = (
        Discrepancy.objects.select_for_update(no_key=True, of=("self",))
        .select_related("payment")
        .get(pk=discrepancy_id)
    )
    if not reason.strip():
        raise OrphanRefused(say("Say where the difference comes from."), "reason")
    if row.closed_at is not None:
        raise OrphanRefused(say("This was answered already."))
    now = engine.clock()
    before = {"payment": row.payment.charge, "difference": row.difference, "open": True}
    row.closed_at, row.outcome, row.reason = now, Discrepancy.OUTSIDE, reason.strip()
    row.closed_by, row.closed_by_name = actor.id, actor.name
    row.save(update_fields=["closed_at", "outcome", "reason", "closed_by", "closed_by_name"])
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action="discrepancy_closed",
        now=now,
        before=before,
        after=before | {"open": False},
        reason=reason.strip(),
    )
    return row
