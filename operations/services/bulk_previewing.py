"""Looking at many first: which they are, as they stand, and what an action will do to each.

A preview freezes that. Nothing is asked for by it.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from operations.domain.audit import Actor
from operations.domain.bulk import (
    MOST_ROWS,
    BulkAction,
    Outlook,
    foresee,
    foresee_outside,
    run_reasons,
    tally,
)
from operations.domain.money import Money
from operations.domain.refund_state import counts_as_refunded
from operations.domain.sentences import Refusal, say
from operations.models import Account, BulkRow, BulkRun, BulkState, ProviderRefund
from operations.models.bulk import NOT_DONE
from operations.models.grouping import insert_many
from operations.models.statements import count_together
from operations.queries.bulk import Stood, stand
from operations.services.engine import Engine

#: How long a preview that came to nothing is kept.
_PREVIEW_LASTS = timedelta(days=1)


class BulkRefused(Refusal):
    """This can't be done; nothing was changed."""


@transaction.atomic
def preview(
    *,
    engine: Engine,
    action: BulkAction,
    ids: Sequence[UUID] | Sequence[int],
    actor: Actor,
    selection: Mapping[str, Any] | None = None,
    retry_of: BulkRun | None = None,
) -> BulkRun:
    """Freeze these operations as they stand, with what the action will do to each.

    What is to be marked as made outside is given by the ids of our rows of the provider's refunds.

    `selection`: how they were chosen, to choose anew. Raises BulkRefused.
    """
    if len(ids) > MOST_ROWS:
        raise BulkRefused(say("More than {most} can't be chosen at once.", most=MOST_ROWS))
    if action is BulkAction.MARK_OUTSIDE:
        lines = _lines_of_orphans([pk for pk in ids if isinstance(pk, int)])
    else:
        lines = _lines(engine, action, [pk for pk in ids if isinstance(pk, UUID)], actor)
    if not lines:
        raise BulkRefused(say("Choose at least one operation."))
    run = _foreseen(engine, action, lines, actor)
    run.selection = dict(selection or {})
    run.retry_of = retry_of
    run.save()
    for line in lines:
        line.run_id = run.pk
    names = tuple(field.attname for field in BulkRow._meta.concrete_fields if not field.primary_key)
    count_together(insert_many(lines, names, once=False))
    return run


def _lines_of_orphans(ids: Sequence[int]) -> list[BulkRow]:
    """A row for each of these refunds, newest first. One query."""
    refunds = ProviderRefund.objects.filter(pk__in=ids).select_related("made_outside")
    lines = []
    for place, refund in enumerate(refunds.order_by("-first_seen_at", "-pk"), 1):
        seen = foresee_outside(
            counts=counts_as_refunded(refund.status),
            belongs=refund.operation_id is not None,
            is_found=hasattr(refund, "made_outside"),
        )
        lines.append(
            BulkRow(
                place=place,
                orphan=refund,
                seen=refund.status,
                revision=0,
                amount=refund.amount,
                currency=refund.currency,
                outlook=seen.outlook,
                why=[str(reason) for reason in seen.why],
                refund=refund.provider_object_id,
            )
        )
    return lines


def _lines(engine: Engine, action: BulkAction, ids: Sequence[UUID], actor: Actor) -> list[BulkRow]:
    """A row for each of these operations, in their order."""
    now, limits = engine.clock(), engine.second_person_above
    stood = stand(list(dict.fromkeys(ids)), person=actor.id, now=now)
    conclusive = conclusive_after(engine, stood)
    lines: list[BulkRow] = []
    for place, row in enumerate(stood, 1):
        standing = row.standing
        seen = foresee(
            action,
            standing,
            limits=limits,
            conclusive_after_s=conclusive[row.account_id],
            now=now,
        )
        lines.append(
            BulkRow(
                place=place,
                operation_id=row.id,
                revision=row.revision,
                amount=standing.money.amount,
                currency=standing.money.currency,
                outlook=seen.outlook,
                why=[str(reason) for reason in seen.why],
                refund=standing.refund,
            )
        )
    return lines


def _foreseen(
    engine: Engine, action: BulkAction, lines: Sequence[BulkRow], actor: Actor
) -> BulkRun:
    limits = engine.second_person_above
    tallied = tally((Outlook(line.outlook), Money(line.amount, line.currency)) for line in lines)
    acts = len(lines) - tallied.counts.get(Outlook.CANNOT, 0)
    return BulkRun(
        action=action,
        rows=len(lines),
        acts=acts,
        counts={str(name): count for name, count in tallied.counts.items()},
        sums={
            currency: {str(name): amount for name, amount in sums.items()}
            for currency, sums in sorted(tallied.sums.items())
        },
        reasons=[
            str(reason)
            for reason in run_reasons(action, tallied, alone=engine.bulk_alone, limits=limits)
        ],
        made_by=actor.id,
        made_by_name=actor.name,
        made_at=engine.clock(),
    )


def conclusive_after(engine: Engine, stood: Sequence[Stood]) -> dict[int, int | None]:
    """How late the provider's list shows a refund, for each account of these operations."""
    accounts = Account.objects.in_bulk({row.account_id for row in stood})
    return {
        pk: engine.provider(account).contract.lookup_conclusive_after_s
        for pk, account in accounts.items()
    }


def retry(*, engine: Engine, run_id: int, actor: Actor) -> BulkRun:
    """Preview anew what an ended run did not do. Raises BulkRefused."""
    run = BulkRun.objects.get(pk=run_id)
    if run.state != BulkState.ENDED:
        raise BulkRefused(say("It can be tried again when it has ended."))
    rows = run.lines.filter(result__in=NOT_DONE).order_by("place")
    return preview(
        engine=engine,
        action=BulkAction(run.action),
        ids=_ids_of(run, rows),
        actor=actor,
        selection={"retry": run.pk},
        retry_of=run,
    )


def look_anew(*, engine: Engine, run_id: int, ids: Sequence[UUID], actor: Actor) -> BulkRun:
    """Preview the same once more, as it stands now. Raises BulkRefused."""
    run = BulkRun.objects.get(pk=run_id)
    return preview(
        engine=engine,
        action=BulkAction(run.action),
        ids=ids or _ids_of(run, run.lines.order_by("place")),
        actor=actor,
        selection=run.selection,
        retry_of=run.retry_of,
    )


def _ids_of(run: BulkRun, rows: QuerySet[BulkRow]) -> list[Any]:
    """Of what these rows are of, in their order."""
    is_outside = run.action == BulkAction.MARK_OUTSIDE
    return list(rows.values_list("orphan_id" if is_outside else "operation_id", flat=True))


def forget_previews(*, engine: Engine) -> int:
    """Remove previews that came to nothing. Returns how many there were."""
    old = BulkRun.objects.filter(
        state=BulkState.PREVIEWED, made_at__lt=engine.clock() - _PREVIEW_LASTS
    )
    pks = list(old.order_by("pk").values_list("pk", flat=True)[:100])
    removed = 0
    for pk in pks:
        with transaction.atomic():
            # Somebody may just be beginning it.
            free = BulkRun.objects.select_for_update(skip_locked=True).filter(
                pk=pk, state=BulkState.PREVIEWED
            )
            if free.exists():
                BulkRow.objects.filter(run=pk).delete()
                BulkRun.objects.filter(pk=pk).delete()
                removed += 1
    return removed
