"""Reissuing: a new refund in the place of a failed one, linked to it, under a key of its own.

It goes through the same door as every request: the till, the limits, one identity at a time. The
failed operation's id is the request's token, so that it is reissued once, whoever sends it again.
"""

from uuid import UUID

from django.db import transaction

from operations.domain.audit import Actor, ActorKind
from operations.domain.identity import RefundInput
from operations.domain.money import Money
from operations.domain.sentences import Outside, Sentence, say
from operations.domain.statuses import UNRESOLVED, Status
from operations.models import AuditEntry, Operation
from operations.queries.answers import is_contested
from operations.services.claiming import refuse_others
from operations.services.engine import Engine
from operations.services.identifying import Asker, ConflictingOperation, ReusedWithOtherInput
from operations.services.opening import (
    AboveTheTill,
    ExposureReached,
    InputRefused,
    PaymentUnreadable,
)
from operations.services.requesting import request_refund
from operations.services.sending import InProgress
from operations.services.settling import lock
from operations.services.weighing import ClosingRefused, StaleView


class ReissueRefused(ClosingRefused):
    """No new refund was opened. The sentence says why."""


_IN_BETWEEN = say("Another refund of this order has come in between.")


def reissue(
    *,
    engine: Engine,
    operation_id: UUID,
    reason: str,
    revision: int,
    actor: Actor,
    may_exceed: bool = False,
) -> Operation:
    """Open and send a new operation like a failed one; it, as it stands then.

    `may_exceed`: whether this person may do so above the limit for one person. Sent again, it
    answers with the operation that was opened. Raises StaleView, ReissueRefused.
    """
    known = Operation.objects.filter(reissue_of=operation_id).order_by("-created_at").first()
    if known is not None:
        return known
    failed = _asked_for(
        engine=engine,
        operation_id=operation_id,
        reason=reason,
        revision=revision,
        actor=actor,
        may_exceed=may_exceed,
    )
    try:
        opened = _request(engine, failed, actor)
    except (InputRefused, PaymentUnreadable, ExposureReached) as error:
        _tell(engine, failed, actor, "reissue_refused", str(error))
        raise ReissueRefused(_why(error, failed)) from error
    except (ConflictingOperation, ReusedWithOtherInput) as error:
        _tell(engine, failed, actor, "reissue_refused", str(error))
        raise ReissueRefused(_IN_BETWEEN) from error
    if opened.reissue_of_id != failed.pk:
        _tell(engine, failed, actor, "reissue_refused", f"Operation {opened.pk} is there.")
        raise ReissueRefused(_IN_BETWEEN)
    _tell(engine, failed, actor, "reissued", reason.strip(), opened=str(opened.pk))
    return opened


def why_not_reissued(engine: Engine, operation: Operation, *, may_exceed: bool) -> Sentence | None:
    """Why no new refund may be opened in the place of this one; None when one may."""
    if operation.status != Status.FAILED:
        return say("Only a failed refund can be made anew.")
    if is_contested(operation) or operation.attention:
        return say("Something speaks against its end. Settle that first.")
    others = Operation.objects.filter(
        order_id=operation.order_id,
        reference=operation.reference,
        account__livemode=operation.account.livemode,
    ).exclude(pk=operation.pk)
    if others.filter(status__in=UNRESOLVED).exists():
        return say("Another refund of this order is not settled yet.")
    if others.filter(created_at__gt=operation.created_at).exists():
        return say("There is a later refund of this order; go on from that one.")
    limit = engine.second_person_above.get(operation.currency)
    if (limit is None or operation.amount > limit) and not may_exceed:
        return say("The amount is above the limit for one person: an approver has to do it.")
    return None


def _why(error: InputRefused | PaymentUnreadable | ExposureReached, failed: Operation) -> Sentence:
    """Why the request was not taken, in words for who reissues."""
    match error:
        case AboveTheTill(till=till):
            return say(
                "Of this payment, {free} can still be refunded: {taken} is refunded or may be.",
                free=Money(till.free, failed.currency),
                taken=Money(till.ours + till.others, failed.currency),
            )
        case ExposureReached():
            return say("Too many refunds are unknown already. Bring them to an end first.")
        case PaymentUnreadable():
            return say("The payment can't be read at the provider right now. Ask again later.")
        case _:
            return say("The request was refused: {message}", message=Outside(str(error)))


@transaction.atomic
def _asked_for(
    *,
    engine: Engine,
    operation_id: UUID,
    reason: str,
    revision: int,
    actor: Actor,
    may_exceed: bool,
) -> Operation:
    """Check under the lock and write down who asks, before anything is opened or sent."""
    operation = lock(operation_id)
    if operation.revision != revision:
        raise StaleView(operation)
    refuse_others(operation, actor=actor, now=engine.clock())
    if actor.kind is not ActorKind.PERSON:
        raise ReissueRefused(say("Only a person reissues a refund."))
    if not reason.strip():
        raise ReissueRefused(say("Say why it is made anew."), "reason")
    refusal = why_not_reissued(engine, operation, may_exceed=may_exceed)
    if refusal is not None:
        raise ReissueRefused(refusal)
    _append(engine, operation, actor, "reissue_asked", reason.strip(), "")
    return operation


def _request(engine: Engine, failed: Operation, actor: Actor) -> Operation:
    payment = failed.payment
    wish = RefundInput(
        account=failed.account.name,
        order_id=failed.order_id,
        reference=failed.reference,
        amount=failed.amount,
        currency=failed.currency,
        payment=payment.payment_intent or payment.charge,
        customer_account=failed.customer_account,
        reason=failed.reason,
        group=failed.group,
    )
    asker = Asker(actor=actor, api_key=None, token=f"reissue-{failed.pk}")
    try:
        return request_refund(engine=engine, wish=wish, asker=asker)
    except InProgress as busy:
        return Operation.objects.get(pk=busy.operation_id)


@transaction.atomic
def _tell(
    engine: Engine, operation: Operation, actor: Actor, action: str, reason: str, opened: str = ""
) -> None:
    _append(engine, lock(operation.pk), actor, action, reason, opened)


def _append(
    engine: Engine, operation: Operation, actor: Actor, action: str, reason: str, opened: str
) -> None:
    AuditEntry.append(
        operation_id=operation.pk,
        actor=actor,
        action=action,
        now=engine.clock(),
        before=operation.snapshot(),
        after=operation.snapshot() | ({"reissue": opened} if opened else {}),
        reason=reason,
    )
