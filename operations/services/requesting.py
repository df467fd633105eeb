"""Requesting: from one time that somebody asked to how the operation stands now."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from django.db import IntegrityError

from operations.domain.budgets import CallBudget
from operations.domain.identity import RefundInput, group_id
from operations.domain.standing import of_payment
from operations.domain.statuses import Status
from operations.models import Operation, Payment, collecting
from operations.models.statements import Statement, run
from operations.services.accounts import UnknownAccount
from operations.services.engine import Engine
from operations.services.finishing import Begun, known_of
from operations.services.identifying import (
    AccountOutOfReach,
    Asker,
    ConflictingOperation,
    Identified,
    ReusedWithOtherInput,
    identify,
    identity_lock,
    join,
)
from operations.services.opening import (
    AboveTheTill,
    ExposureReached,
    InputRefused,
    PaymentUnreadable,
    Prepared,
    open_operation,
    payment_lock,
    prepare,
    take_lock,
)
from operations.services.sending import (
    InProgress,
    continue_sending,
    leave_to_the_sweep,
    may_send_at_once,
    new_holder,
    send_until_decided,
    start_attempt,
)
from operations.services.settling import lock

__all__ = [
    "AboveTheTill",
    "AccountOutOfReach",
    "Asker",
    "ConflictingOperation",
    "ExposureReached",
    "InputRefused",
    "PaymentUnreadable",
    "ReusedWithOtherInput",
    "request_group",
    "request_refund",
]

_Result = TypeVar("_Result")


def request_refund(*, engine: Engine, wish: RefundInput, asker: Asker) -> Operation:
    """Find or open the operation that is asked for, send what may be sent, return it as it stands.

    Raises InProgress, ConflictingOperation, ReusedWithOtherInput and, with nothing recorded or
    sent, InputRefused, PaymentUnreadable, ExposureReached.
    """
    call = CallBudget.start(engine.budget, engine.clock())
    opened = _again_on_conflict(
        lambda: _join_or_open(engine=engine, wish=wish, asker=asker, call=call)
    )
    if isinstance(opened, Begun):
        return continue_sending(engine=engine, begun=opened, actor=asker.actor, call=call)
    if opened.status != Status.OPEN:
        return opened
    send_until_decided(engine=engine, operation_id=opened.pk, actor=asker.actor, call=call)
    return _as_it_stands(opened.pk)


def request_group(
    *, engine: Engine, wishes: Sequence[RefundInput], asker: Asker
) -> list[Operation]:
    """Several refunds that belong together, each an operation with its own key, under one group.

    All of them are opened in one transaction or none is; then each is sent for itself, and the
    answer says how each stands. A part without a reference is told apart by its payment. Raises
    what `request_refund` raises, but InProgress only shows in how a part stands.
    """
    parts = _parts(wishes)
    call = CallBudget.start(engine.budget, engine.clock())
    operations = _again_on_conflict(lambda: _open_group(engine=engine, parts=parts, asker=asker))
    for operation_id in operations:
        if _as_it_stands(operation_id).status != Status.OPEN:
            continue
        try:
            send_until_decided(
                engine=engine, operation_id=operation_id, actor=asker.actor, call=call
            )
        except InProgress:
            continue
    return [_as_it_stands(operation_id) for operation_id in operations]


def _again_on_conflict(act: Callable[[], _Result]) -> _Result:
    """Decide once more when somebody else was faster: his row is found the second time.

    The lock of the identity lets nobody else open for the same order, but a tool call or a token
    can arrive for two orders at once.
    """
    try:
        return act()
    except IntegrityError:
        return act()


def _identify(
    engine: Engine,
    wish: RefundInput,
    asker: Asker,
    charge: str = "",
    after: Sequence[Statement] = (),
) -> Identified:
    try:
        return identify(engine=engine, wish=wish, asker=asker, charge=charge, after=after)
    except UnknownAccount:
        raise InputRefused("account", "There is no account of this name.") from None


def _as_it_stands(operation_id: UUID) -> Operation:
    return Operation.objects.select_related("payment", "account").get(pk=operation_id)


def _join_or_open(
    *, engine: Engine, wish: RefundInput, asker: Asker, call: CallBudget
) -> Begun | Operation:
    """The operation that the request stands for, or a new one: its first attempt if it may be sent.

    It is asked twice what the request stands for: before the payment is read at the provider, and
    again under the locks.
    """
    request = _identify(engine, wish, asker)
    operation = join(engine, request)
    if operation is not None:
        return operation
    account = request.account
    prepared = prepare(engine=engine, account=account, wish=wish)
    payment, statement = payment_lock(engine=engine, account=account, facts=prepared.facts)
    with collecting.collecting() as collected:
        locks = [identity_lock(wish), statement]
        request = _identify(engine, wish, asker, prepared.facts.charge, locks)
        take_lock(payment, request.locked[-1])
        operation = join(engine, request)
        if operation is not None:
            return operation
        operation = open_operation(
            engine=engine, payment=payment, prepared=prepared, request=request
        )
        now = engine.clock()
        if now < call.ends_at and may_send_at_once(operation, of_payment(request.related), now):
            attempt = start_attempt(engine, operation, holder=new_holder(), now=now)
            return Begun(attempt, known_of(collected, attempt))
        leave_to_the_sweep(engine, operation, now)
        return operation


def _parts(wishes: Sequence[RefundInput]) -> list[RefundInput]:
    """The parts of a group, told apart by reference, under the id that their input makes."""
    named = [replace(wish, reference=wish.reference or wish.payment) for wish in wishes]
    references = [wish.reference for wish in named]
    if len(set(references)) != len(references):
        raise InputRefused("refunds", "Two parts have the same payment or reference.")
    group = group_id(named)
    return [replace(wish, group=group) for wish in named]


def _open_group(*, engine: Engine, parts: Sequence[RefundInput], asker: Asker) -> list[UUID]:
    """The operations of all parts, in their order: joined, or opened together."""
    account = _identify(engine, parts[0], asker).account
    prepared: dict[int, Prepared] = {}
    joined: set[UUID] = set()
    for number, wish in enumerate(parts, 1):
        operation = join(engine, _identify(engine, wish, asker.for_part(number)))
        if operation is None:
            prepared[number] = prepare(engine=engine, account=account, wish=wish)
        else:
            joined.add(operation.pk)
    found: list[UUID] = []
    with collecting.collecting():
        for wish in sorted(parts, key=lambda wish: (wish.order_id, wish.reference)):
            run(*identity_lock(wish))
        payments: dict[str, Payment] = {}
        for facts in sorted(
            (item.facts for item in prepared.values()), key=lambda facts: facts.charge
        ):
            payment, statement = payment_lock(engine=engine, account=account, facts=facts)
            take_lock(payment, run(*statement))
            payments[facts.charge] = payment
        # By id, as everywhere: two that lock several operations never wait for each other.
        for operation_id in sorted(joined):
            lock(operation_id)
        for number, wish in enumerate(parts, 1):
            ready = prepared.get(number)
            charge = ready.facts.charge if ready else ""
            request = _identify(engine, wish, asker.for_part(number), charge)
            operation = join(engine, request)
            if operation is None:
                if ready is None:
                    raise PaymentUnreadable("A part of the group settled in between.")
                operation = open_operation(
                    engine=engine, payment=payments[charge], prepared=ready, request=request
                )
                leave_to_the_sweep(engine, operation, engine.clock())
                collecting.flush()  # The next part must find this one at the till.
            found.append(operation.pk)
    return found
