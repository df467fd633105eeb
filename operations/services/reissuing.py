"""Reissuing: a new refund in the place of a failed one, linked to it, under a key of its own.

It goes through the same door as every request: the till, the limits, one identity at a time. The
failed operation's id is the request's token, so that it is reissued once, whoever sends it again.
"""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery, TextField
from django.db.models.functions import Cast

from operations.domain.audit import Actor, ActorKind
from operations.domain.identity import RefundInput
from operations.domain.money import Money
from operations.domain.sentences import Outside, Sentence, say
from operations.domain.statuses import UNRESOLVED, Status
from operations.models import AuditEntry, Operation
from operations.queries.answers import is_contested
from operations.services.actors import SWEEP
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
from operations.services.weighing import ClosingRefused, Overtaken, StaleView


class ReissueRefused(ClosingRefused):
    """No new refund was opened. The sentence says why."""


#: The entries of a failed operation's chain: somebody asks, and then the one or the other.
_ASKED, _DONE, _REFUSED = "reissue_asked", "reissued", "reissue_refused"
#: How far back the sweep looks for what was left without an end.
_LOOKED_BACK = timedelta(days=2)
_RIGHT_NOW = say("This refund is being made anew right now. Look again in a minute.")
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

    `may_exceed`: whether this person may do so above the limit for one person. Sent again by the
    same person, it answers with the operation that was opened. Raises StaleView, ReissueRefused,
    Overtaken.
    """
    failed, known = _asked_for(
        engine=engine,
        operation_id=operation_id,
        reason=reason,
        revision=revision,
        actor=actor,
        may_exceed=may_exceed,
    )
    if known is not None:
        return known
    try:
        opened = _request(engine, failed, actor)
    except (InputRefused, PaymentUnreadable, ExposureReached) as error:
        _tell(engine, failed.pk, actor, _REFUSED, str(error))
        raise ReissueRefused(_why(error, failed)) from error
    except (ConflictingOperation, ReusedWithOtherInput) as error:
        _tell(engine, failed.pk, actor, _REFUSED, str(error))
        raise ReissueRefused(_IN_BETWEEN) from error
    if opened.reissue_of_id != failed.pk:
        _tell(engine, failed.pk, actor, _REFUSED, f"Operation {opened.pk} is there.")
        raise ReissueRefused(_IN_BETWEEN)
    _tell(engine, failed.pk, actor, _DONE, reason.strip(), opened=str(opened.pk))
    return opened


def finish_reissues(*, engine: Engine) -> int:
    """Write down what came of reissues whose process ended before it could. How many there were.

    The refund that they opened goes on by itself, as every one does.
    """
    now = engine.clock()
    newest = _entries(Cast(OuterRef("reissue_of_id"), TextField())).values("action")[:1]
    left = Operation.objects.filter(
        reissue_of__isnull=False,
        created_at__gt=now - _LOOKED_BACK,
        created_at__lte=now - _longest(engine),
    ).annotate(newest=Subquery(newest))
    found = list(left.filter(newest=_ASKED).values_list("reissue_of", "pk"))
    for failed, opened in found:
        if failed is not None:
            _tell(engine, failed, SWEEP, _DONE, "", opened=str(opened))
    return len(found)


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
) -> tuple[Operation, Operation | None]:
    """Check under the lock and write down who asks, before anything is opened or sent.

    With what this person's asking has opened before, if it has.
    """
    operation = lock(operation_id)
    known = _opened_before(engine, operation, actor)
    if known is not None:
        return operation, known
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
    _append(engine, operation, actor, _ASKED, reason.strip(), "")
    return operation, None


def _opened_before(engine: Engine, operation: Operation, actor: Actor) -> Operation | None:
    """What this person's earlier asking has opened. Raises Overtaken when it is somebody else's."""
    newest = _entries(str(operation.pk)).first()
    known = Operation.objects.filter(reissue_of=operation).order_by("-created_at").first()
    is_asked = newest is not None and newest.action == _ASKED
    if known is None:
        if newest is not None and is_asked and engine.clock() < newest.at + _longest(engine):
            raise Overtaken(_RIGHT_NOW)
        return None
    asked = _entries(str(operation.pk)).filter(action=_ASKED).first()
    if asked is None or asked.actor_id != actor.id:
        raise Overtaken(_IN_BETWEEN)
    if is_asked:
        # The process that opened it ended before it could say so.
        _append(engine, operation, actor, _DONE, asked.reason, str(known.pk))
    return known


def _entries(chain: str | Cast) -> QuerySet[AuditEntry]:
    """What was asked and answered about making an operation anew, the newest first."""
    return AuditEntry.objects.filter(chain=chain, action__in=(_ASKED, _DONE, _REFUSED)).order_by(
        "-number"
    )


def _longest(engine: Engine) -> timedelta:
    """How long the process that asks may be at it."""
    return timedelta(seconds=engine.budget.call_deadline_s + engine.lease_s)


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
    engine: Engine, operation_id: UUID, actor: Actor, action: str, reason: str, opened: str = ""
) -> None:
    """Once: somebody may have written it for a process that took longer than any should."""
    locked = lock(operation_id)
    newest = _entries(str(operation_id)).first()
    if newest is not None and newest.action == _ASKED:
        _append(engine, locked, actor, action, reason or newest.reason, opened)


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
