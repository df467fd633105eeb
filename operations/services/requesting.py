"""Requesting: from one time that somebody asked to how the operation stands now."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.db import transaction

from operations.domain.budgets import CallBudget
from operations.domain.identity import RefundInput, group_id
from operations.domain.statuses import Status
from operations.models import Account, Attempt, Operation, Payment
from operations.services.accounts import UnknownAccount, account_for
from operations.services.engine import Engine
from operations.services.identifying import (
    Asker,
    ConflictingOperation,
    ReusedWithOtherInput,
    join,
    lock_identity,
)
from operations.services.opening import (
    AboveTheTill,
    ExposureReached,
    InputRefused,
    PaymentUnreadable,
    Prepared,
    lock_payment,
    open_operation,
    prepare,
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

__all__ = [
    "AboveTheTill",
    "Asker",
    "ConflictingOperation",
    "ExposureReached",
    "InputRefused",
    "PaymentUnreadable",
    "ReusedWithOtherInput",
    "request_group",
    "request_refund",
]


def request_refund(*, engine: Engine, wish: RefundInput, asker: Asker) -> Operation:
    """Find or open the operation that is asked for, send what may be sent, return it as it stands.

    Raises InProgress, ConflictingOperation, ReusedWithOtherInput and, with nothing recorded or
    sent, InputRefused, PaymentUnreadable, ExposureReached.
    """
    account = _account(engine, wish)
    call = CallBudget.start(engine.budget, engine.clock())
    operation = join(engine=engine, account=account, wish=wish, asker=asker)
    if operation is None:
        opened = _open_or_join(engine=engine, account=account, wish=wish, asker=asker)
        if isinstance(opened, Attempt):
            continue_sending(engine=engine, attempt=opened, actor=asker.actor, call=call)
            return _as_it_stands(opened.operation_id)
        operation = opened
    if operation.status == Status.OPEN:
        send_until_decided(engine=engine, operation_id=operation.pk, actor=asker.actor, call=call)
    return _as_it_stands(operation.pk)


def request_group(
    *, engine: Engine, wishes: Sequence[RefundInput], asker: Asker
) -> list[Operation]:
    """Several refunds that belong together, each an operation with its own key, under one group.

    All of them are opened in one transaction or none is; then each is sent for itself, and the
    answer says how each stands. A part without a reference is told apart by its payment. Raises
    what `request_refund` raises, but InProgress only shows in how a part stands.
    """
    account = _account(engine, wishes[0])
    parts = _parts(wishes)
    call = CallBudget.start(engine.budget, engine.clock())
    operations = _open_group(engine=engine, account=account, parts=parts, asker=asker)
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


def _account(engine: Engine, wish: RefundInput) -> Account:
    try:
        return account_for(engine=engine, name=wish.account)
    except UnknownAccount:
        raise InputRefused("account", "There is no account of this name.") from None


def _as_it_stands(operation_id: UUID) -> Operation:
    return Operation.objects.select_related("payment", "account").get(pk=operation_id)


def _open_or_join(
    *, engine: Engine, account: Account, wish: RefundInput, asker: Asker
) -> Attempt | Operation:
    """Open the operation, with its first attempt if it may be sent now, or join the winner's."""
    prepared = prepare(engine=engine, account=account, wish=wish)
    with transaction.atomic():
        lock_identity(wish)
        payment = lock_payment(engine=engine, account=account, facts=prepared.facts)
        operation = join(engine=engine, account=account, wish=wish, asker=asker)
        if operation is not None:
            return operation
        operation = open_operation(
            engine=engine, account=account, payment=payment, prepared=prepared, asker=asker
        )
        if operation is None:
            raise RuntimeError("The identity was locked, and yet somebody else opened it.")
        now = engine.clock()
        if may_send_at_once(operation, payment, now):
            return start_attempt(engine, operation, holder=new_holder(), now=now)
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


def _open_group(
    *, engine: Engine, account: Account, parts: Sequence[RefundInput], asker: Asker
) -> list[UUID]:
    """The operations of all parts, in their order: joined, or opened together."""
    prepared: dict[int, Prepared] = {}
    for number, wish in enumerate(parts, 1):
        part = asker.for_part(number)
        if join(engine=engine, account=account, wish=wish, asker=part) is None:
            prepared[number] = prepare(engine=engine, account=account, wish=wish)
    found: dict[int, UUID] = {}
    with transaction.atomic():
        for wish in sorted(parts, key=lambda wish: (wish.order_id, wish.reference)):
            lock_identity(wish)
        payments = {
            facts.charge: lock_payment(engine=engine, account=account, facts=facts)
            for facts in sorted(
                (item.facts for item in prepared.values()), key=lambda facts: facts.charge
            )
        }
        for number, wish in enumerate(parts, 1):
            part = asker.for_part(number)
            operation = join(engine=engine, account=account, wish=wish, asker=part)
            if operation is None:
                ready = prepared.get(number)
                if ready is None:
                    raise PaymentUnreadable("A part of the group settled in between.")
                operation = _open_part(engine, account, payments[ready.facts.charge], ready, part)
            found[number] = operation.pk
    return [found[number] for number in sorted(found)]


def _open_part(
    engine: Engine, account: Account, payment: Payment, prepared: Prepared, asker: Asker
) -> Operation:
    operation = open_operation(
        engine=engine, account=account, payment=payment, prepared=prepared, asker=asker
    )
    if operation is None:
        raise RuntimeError("The identity was locked, and yet somebody else opened it.")
    leave_to_the_sweep(engine, operation, engine.clock())
    return operation
