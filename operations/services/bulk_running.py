"""Running what was begun, in chunks: how far it is stands in its rows, not in a message.

A row gets its result in the transaction that does what it says, so a worker that is killed leaves
no row half done and none is done twice.
"""

from collections.abc import Callable
from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from operations.domain.access import Rights
from operations.domain.bulk import BulkAction
from operations.models import BulkRun, BulkState
from operations.queries.access import rights_of_person
from operations.queries.bulk import lines_waiting
from operations.services.bulk import end_if_done, stop_the_rest
from operations.services.bulk_acting import act_on_chunk
from operations.services.bulk_asking import act_on_row
from operations.services.bulk_marking import mark_chunk
from operations.services.engine import Engine

#: How many operations are changed in one transaction.
CHUNK = 500
#: What is done one by one: it asks the provider about each, or locks more than the operation.
ONE_BY_ONE = frozenset([BulkAction.LOOK_UP, BulkAction.MATCH_AGAIN, BulkAction.CLOSE_SUCCEEDED])
#: Who may do what, asked by the id of the person.
RightsOf = Callable[[str], Rights]
#: How many of those that are done one by one are taken on before the run is looked at again.
_ASKED = 20
#: How many workers one run may keep busy.
_WORKERS = 4
#: How long a worker is believed to be at it without a sign of life, in seconds.
LEASE_S = 120


def run_bulk(
    *,
    engine: Engine,
    run_id: int,
    is_over: Callable[[], bool],
    rights_of: RightsOf = rights_of_person,
) -> bool:
    """Run on until the end, or until `is_over` after a chunk. True when there is more to do.

    What its person may do is asked anew for each chunk, and for each row that is done by itself.
    What only writes may be worked on by several at once: each takes the rows that nobody holds.
    """
    run = BulkRun.objects.get(pk=run_id)
    one_by_one = BulkAction(run.action) in ONE_BY_ONE
    if not _claim(engine, run_id, alone=one_by_one):
        return False
    while True:
        run.refresh_from_db()
        if run.stopped_at is not None:
            _stop(engine, run)
        if one_by_one:
            done = _do_some(engine, run, is_over, rights_of)
        else:
            _renew(engine, run)
            rights = rights_of(run.made_by)
            if run.action == BulkAction.MARK_OUTSIDE:
                done = mark_chunk(engine=engine, run=run, rights=rights)
            else:
                done = act_on_chunk(engine=engine, run=run, rights=rights, most=CHUNK)
        if not done:
            _end(engine, run)
            return False
        if is_over():
            BulkRun.objects.filter(pk=run.pk, state=BulkState.RUNNING).update(claimed_until=None)
            return True


def _do_some(engine: Engine, run: BulkRun, is_over: Callable[[], bool], rights_of: RightsOf) -> int:
    done = 0
    for pk in lines_waiting(run.pk, _ASKED):
        _renew(engine, run)
        done += act_on_row(engine=engine, run=run, rights=rights_of(run.made_by), row_id=pk)
        if is_over():
            break
    return done


def workers_for(run: BulkRun) -> int:
    """How many may work on it at once to some good: one for each chunk, and not all there are."""
    if BulkAction(run.action) in ONE_BY_ONE:
        return 1
    return max(1, min(_WORKERS, -(-run.acts // CHUNK)))


def runs_left_lying(*, engine: Engine) -> list[int]:
    """Runs that are to run and that nobody works on."""
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=engine.clock())
    rows = BulkRun.objects.filter(free, state=BulkState.RUNNING)
    return list(rows.order_by("pk").values_list("pk", flat=True)[:20])


def _claim(engine: Engine, run_id: int, *, alone: bool) -> bool:
    now = engine.clock()
    rows = BulkRun.objects.filter(pk=run_id, state=BulkState.RUNNING)
    if alone:
        rows = rows.filter(Q(claimed_until__isnull=True) | Q(claimed_until__lte=now))
    return bool(rows.update(claimed_until=now + timedelta(seconds=LEASE_S)))


def _renew(engine: Engine, run: BulkRun) -> None:
    BulkRun.objects.filter(pk=run.pk, state=BulkState.RUNNING).update(
        claimed_until=engine.clock() + timedelta(seconds=LEASE_S)
    )


@transaction.atomic
def _stop(engine: Engine, run: BulkRun) -> None:
    """What came back to waiting after somebody stopped the run, say from a worker that died."""
    BulkRun.objects.select_for_update(no_key=True).get(pk=run.pk)
    stop_the_rest(run, engine=engine)


@transaction.atomic
def _end(engine: Engine, run: BulkRun) -> None:
    """End it, unless somebody else still holds a row; then they do."""
    locked = BulkRun.objects.select_for_update(no_key=True).get(pk=run.pk)
    end_if_done(locked, engine=engine)
