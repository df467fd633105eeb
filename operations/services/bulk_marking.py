"""Marking many refunds of the provider as made outside, as a run does it: each by the same door."""

from django.db import transaction
from psycopg.types.numeric import Int8

from operations.domain.access import Act, Rights
from operations.domain.sentences import say
from operations.models import BulkResult, BulkRow, BulkRun, ProviderRefund
from operations.models.statements import run as run_sql
from operations.services.bulk_acting import actor_of, right_is_gone, write_result
from operations.services.engine import Engine
from operations.services.orphans import OrphanRefused, mark_outside

#: How many are marked in one transaction.
_CHUNK = 100
# What another worker is just doing is left to it.
_NEXT = """
SELECT id FROM operations_bulkrow WHERE run_id = $1 AND result = ''
ORDER BY place LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
"""


@transaction.atomic
def mark_chunk(*, engine: Engine, run: BulkRun, rights: Rights) -> int:
    """Mark the next ones that nobody holds, in one transaction; how many have a result now."""
    held = [pk for (pk,) in run_sql(_NEXT, [Int8(run.pk), Int8(_CHUNK)])]
    rows = BulkRow.objects.filter(pk__in=held).select_related("orphan__account").order_by("place")
    return sum(_mark(engine, run, row, rights) for row in rows)


def _mark(engine: Engine, run: BulkRun, row: BulkRow, rights: Rights) -> int:
    if row.orphan is None:
        raise ValueError(f"{row} is of no refund.")
    account = row.orphan.account
    if Act.BULK not in rights.at(account.pk):
        said = right_is_gone(run.made_by_name, account.name)
        return write_result(engine, row, BulkResult.REFUSED, said=said)
    # Under its lock, which the door takes anyway.
    refund = ProviderRefund.objects.select_for_update(no_key=True).get(pk=row.orphan.pk)
    if refund.status != row.seen:
        said = say("The provider reports another status of it since the preview.")
        return write_result(engine, row, BulkResult.SKIPPED, said=said, left_as=refund.status[:16])
    try:
        mark_outside(
            engine=engine,
            refund_id=refund.pk,
            reason=run.note,
            actor=actor_of(run),
            bulk_run=run.pk,
        )
    except OrphanRefused as refusal:
        return write_result(engine, row, BulkResult.REFUSED, said=refusal.sentence)
    return write_result(engine, row, BulkResult.MARKED, left_as=refund.status[:16])
