"""Making a refund anew in a process that dies: the trail gets its end, and nothing is twice."""

from dataclasses import replace
from typing import Any

import pytest

from operations.models import AuditEntry, Operation
from operations.services.closing import close
from operations.services.reissuing import finish_reissues, reissue
from operations.services.weighing import Overtaken

from .stage import ALICE, BOB, Stage
from .test_closing import failed, looked_up, unknown

pytestmark = pytest.mark.django_db(transaction=True)


class _Died(BaseException):
    """The process ends here, and nothing after it runs."""


class _Dying:
    """The real adapter of a process that ends when its send has reached the provider, or before."""

    def __init__(self, inner: Any, *, sends: bool) -> None:
        self._inner, self._sends = inner, sends

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read_payment(self, **given: Any) -> Any:
        if not self._sends:
            raise _Died
        return self._inner.read_payment(**given)

    def create_refund(self, **given: Any) -> Any:
        self._inner.create_refund(**given)
        raise _Died


def closed(stage: Stage, payment: str) -> Operation:
    """An operation that one person closed as failed."""
    operation = looked_up(stage, unknown(stage, payment, made=False))
    close(engine=stage.engine, operation_id=operation.pk, decision=failed(operation), actor=ALICE)
    operation.refresh_from_db()
    return operation


def dies(stage: Stage, operation: Operation, *, sends: bool) -> None:
    opener = stage.engine.open_provider
    engine = replace(
        stage.engine, open_provider=lambda account: _Dying(opener(account), sends=sends)
    )
    with pytest.raises(_Died):
        reissue(engine=engine, **asking(operation))


def asking(operation: Operation, actor: Any = ALICE) -> dict[str, Any]:
    given = {"operation_id": operation.pk, "revision": operation.revision}
    return given | {"reason": "It never ran.", "actor": actor}


def trail(operation: Operation) -> list[tuple[str, str]]:
    """Who asked for another and what came of it."""
    entries = AuditEntry.objects.filter(operation_id=operation.pk, action__startswith="reissue")
    return list(entries.order_by("number").values_list("action", "actor_name"))


def test_asking_again_writes_what_the_dead_process_could_not(stage: Stage) -> None:
    payment = stage.payment()
    operation = closed(stage, payment)
    dies(stage, operation, sends=True)
    assert trail(operation) == [("reissue_asked", "Alice")]

    opened = reissue(engine=stage.engine, **asking(operation))

    assert trail(operation) == [("reissue_asked", "Alice"), ("reissued", "Alice")]
    assert reissue(engine=stage.engine, **asking(operation)) == opened
    assert len(trail(operation)) == 2
    assert (stage.refunds(payment), len(stage.keys(payment))) == (1, 2)


def test_the_sweep_writes_it_when_nobody_asks_again(stage: Stage) -> None:
    operation = closed(stage, stage.payment())
    dies(stage, operation, sends=True)

    assert finish_reissues(engine=stage.engine) == 0  # It may still be at it.
    stage.clock.advance(600)
    assert finish_reissues(engine=stage.engine) == 1
    assert finish_reissues(engine=stage.engine) == 0

    assert trail(operation) == [("reissue_asked", "Alice"), ("reissued", "Sweep")]
    entry = AuditEntry.objects.get(operation_id=operation.pk, action="reissued")
    opened = Operation.objects.get(reissue_of=operation)
    assert (entry.after["reissue"], entry.reason) == (str(opened.pk), "It never ran.")


def test_nobody_asks_while_somebody_is_at_it_and_anybody_when_nothing_came_of_it(
    stage: Stage,
) -> None:
    payment = stage.payment()
    operation = closed(stage, payment)
    dies(stage, operation, sends=False)

    for actor in (ALICE, BOB):
        with pytest.raises(Overtaken):
            reissue(engine=stage.engine, **asking(operation, actor))
    assert len(trail(operation)) == 1
    stage.clock.advance(600)
    assert finish_reissues(engine=stage.engine) == 0
    reissue(engine=stage.engine, **asking(operation, BOB))

    asked = [("reissue_asked", "Alice"), ("reissue_asked", "Bob"), ("reissued", "Bob")]
    assert trail(operation) == asked
    assert stage.refunds(payment) == 1
