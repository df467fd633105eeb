"""What a run does to its rows one by one, asking the provider behind the account's rate limits."""

from django.db import transaction

from operations.domain.access import Act, Rights
from operations.domain.bulk import BulkAction, Outlook, foresee
from operations.models import (
    Account,
    BulkResult,
    BulkRow,
    BulkRun,
    Claim,
    Operation,
    collecting,
)
from operations.models.statements import run as run_sql
from operations.queries.bulk import stand
from operations.services.bulk_acting import (
    THESE,
    actor_of,
    as_begun,
    decision_of,
    keep_error,
    last_changed_by,
    reasons_of,
    right_is_gone,
    write_result,
)
from operations.services.closing import lock_as_seen, propose, settle
from operations.services.engine import Engine
from operations.services.looking_up import LookupResult, look_up
from operations.services.matching_again import match_again
from operations.services.weighing import (
    ClosingRefused,
    StaleView,
    checked_refund,
)


def act_on_row(*, engine: Engine, run: BulkRun, rights: Rights, row_id: int) -> int:
    """Do it to one row by itself; 1 when it has a result now, 0 when it had one."""
    row = BulkRow.objects.filter(pk=row_id, result="").first()
    if row is None:
        return 0
    account = Account.objects.get(operations=row.operation_pk)
    if Act.BULK not in rights.at(account.pk):
        said = right_is_gone(run.made_by_name, account.name)
        return write_result(engine, row, BulkResult.REFUSED, said=said)
    try:
        if run.action == BulkAction.LOOK_UP:
            return _look_up(engine, run, row)
        if run.action == BulkAction.MATCH_AGAIN:
            return _match_again(engine, run, row)
        return _close_succeeded(engine, run, row)
    except StaleView as stale:
        who = last_changed_by([row.operation_pk]).get(row.operation_pk, "")
        return write_result(
            engine, row, BulkResult.SKIPPED, detail=who, left_as=stale.operation.status
        )
    except ClosingRefused as refusal:
        return write_result(engine, row, BulkResult.REFUSED, said=refusal.sentence)
    except Exception as error:
        return keep_error(engine, row.pk, error)


def _look_up(engine: Engine, run: BulkRun, row: BulkRow) -> int:
    found = look_up(engine=engine, operation_id=row.operation_pk, actor=actor_of(run))
    was_read = found is not LookupResult.UNREADABLE
    left_as = Operation.objects.values_list("status", flat=True).get(pk=row.operation_pk)
    result = BulkResult.LOOKED_UP if was_read else BulkResult.FAILED
    return write_result(engine, row, result, detail=str(found), left_as=left_as)


def _match_again(engine: Engine, run: BulkRun, row: BulkRow) -> int:
    """What it changes and the row's result are one transaction."""
    with collecting.collecting(in_groups=True):
        if not run_sql(THESE, [[row.pk]]):
            return 0
        found = match_again(
            engine=engine,
            operation_id=row.operation_pk,
            actor=actor_of(run),
            reason=run.note,
            bulk_run=run.pk,
        )
        collecting.flush()
        result = BulkResult.MATCHED if found.is_new else BulkResult.NOTHING_NEW
        left_as = Operation.objects.values_list("status", flat=True).get(pk=row.operation_pk)
        return write_result(engine, row, result, said=found.in_a_sentence(), left_as=left_as)


def _close_succeeded(engine: Engine, run: BulkRun, row: BulkRow) -> int:
    """Close it by the refund that is known, read live, as a person would who names its id.

    Raises StaleView, ClosingRefused.
    """
    decision, actor = decision_of(run, row), actor_of(run)
    refund = checked_refund(engine, row.operation_pk, decision)
    with transaction.atomic():
        if not run_sql(THESE, [[row.pk]]):
            return 0
        operation = lock_as_seen(row.operation_pk, row.revision)
        now = engine.clock()
        (known,) = stand([row.operation_pk], person=actor.id, now=now)
        seen = foresee(
            BulkAction(run.action),
            known.standing,
            limits=engine.second_person_above,
            conclusive_after_s=None,
            now=now,
        )
        seen = as_begun(row, seen)
        if seen.outlook is Outlook.CANNOT:
            why = " ".join(str(reason) for reason in seen.why)
            return write_result(
                engine, row, BulkResult.REFUSED, detail=why, left_as=operation.status
            )
        Claim.objects.filter(pk=row.operation_pk).delete()
        if seen.outlook is Outlook.SECOND:
            propose(operation, decision, reasons_of(seen), actor, now)
            return write_result(engine, row, BulkResult.PROPOSED, left_as=operation.status)
        settle(operation, decision, refund, actor, now)
        return write_result(engine, row, BulkResult.CLOSED, left_as=operation.status)
