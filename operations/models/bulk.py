"""Acting on many operations at once: one run, and one row for each operation in it."""

from uuid import UUID

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from operations.domain.bulk import BulkAction, Outlook
from operations.models.operation import Operation
from operations.models.provider_refund import ProviderRefund
from operations.models.triggers import (
    kept_once_its_run_began,
    no_truncate,
    no_update_when,
    only_in_a_running_run,
    run_ends_with_its_rows,
)


class BulkState(models.TextChoices):
    """How far a run is. A preview is none yet: nothing was asked for."""

    PREVIEWED = "previewed", "Preview"
    WAITING = "waiting", "Waiting for a second person"
    RUNNING = "running", "Running"
    ENDED = "ended", "Ended"
    REJECTED = "rejected", "Rejected"


class BulkResult(models.TextChoices):
    """What became of one row. "" while it waits."""

    WAITING = "", "Waiting"
    CLOSED = "closed", "Closed"
    PROPOSED = "proposed", "Proposed, waits for a second person"
    LOOKED_UP = "looked_up", "Looked up"
    MATCHED = "matched", "Matched"
    NOTHING_NEW = "nothing_new", "Nothing new"
    CLAIMED = "claimed", "Claimed"
    ASSIGNED = "assigned", "Assigned"
    MARKED = "marked", "Marked as made outside"
    SKIPPED = "skipped", "Changed since the preview: not touched"
    REFUSED = "refused", "Refused by the rules now: not touched"
    LEFT = "left", "Left as the preview said"
    STOPPED = "stopped", "Stopped before its turn"
    FAILED = "failed", "Could not be done"


#: What another run may try again.
NOT_DONE = (BulkResult.SKIPPED, BulkResult.REFUSED, BulkResult.STOPPED, BulkResult.FAILED)
_MOVES = (
    ("previewed", "waiting"),
    ("previewed", "running"),
    ("waiting", "running"),
    ("waiting", "rejected"),
    ("running", "ended"),
)
_ENDS = (BulkState.ENDED, BulkState.REJECTED)


class BulkRun(models.Model):
    """One action on many operations, as a person saw it before it began.

    `selection` says how they were chosen. `rows` is how many there are, `acts` how many of them it
    acts on; `sums` are per currency and outlook, in the Stripe unit. `reasons`: why the run as a
    whole wants a second person. `assignee`: who works on them then, where that is the action.
    `claimed_until`: a worker is at it. Times in UTC.
    """

    action = models.CharField(max_length=16)
    selection = models.JSONField(default=dict)
    retry_of = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="retries"
    )
    rows = models.PositiveIntegerField()
    acts = models.PositiveIntegerField()
    counts = models.JSONField(default=dict)
    sums = models.JSONField(default=dict)
    reasons = ArrayField(models.CharField(max_length=16), default=list, blank=True)
    made_by = models.CharField(max_length=255)
    made_by_name = models.CharField(max_length=255)
    made_at = models.DateTimeField()

    state = models.CharField(max_length=16, default=BulkState.PREVIEWED)
    evidence_kind = models.CharField(max_length=32, blank=True, default="")
    evidence_reference = models.CharField(max_length=255, blank=True, default="")
    note = models.TextField(blank=True, default="")
    assignee = models.CharField(max_length=255, blank=True, default="", db_default="")
    assignee_name = models.CharField(max_length=255, blank=True, default="", db_default="")
    started_from = models.CharField(max_length=64, blank=True, default="")
    started_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=255, blank=True, default="")
    decided_by_name = models.CharField(max_length=255, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    decision_note = models.TextField(blank=True, default="")
    stopped_by_name = models.CharField(max_length=255, blank=True, default="")
    stopped_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(action__in=sorted(BulkAction)), name="bulk_action_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=BulkState.values), name="bulk_state_known"
            ),
            models.CheckConstraint(
                condition=Q(acts__lte=F("rows"), rows__gt=0), name="bulk_counts_fit"
            ),
            models.CheckConstraint(condition=~Q(made_by=""), name="bulk_has_a_person"),
            # Nothing is done to many without a word of why.
            models.CheckConstraint(
                condition=Q(state=BulkState.PREVIEWED, started_at__isnull=True)
                | (~Q(state=BulkState.PREVIEWED) & Q(started_at__isnull=False) & ~Q(note="")),
                name="bulk_started_says_why",
            ),
            # Something is left to somebody by name.
            models.CheckConstraint(
                condition=Q(assignee="", assignee_name="", state=BulkState.PREVIEWED)
                | (Q(action=BulkAction.ASSIGN) & ~Q(assignee="") & ~Q(assignee_name=""))
                | (~Q(action=BulkAction.ASSIGN) & Q(assignee="", assignee_name="")),
                name="bulk_assigned_to_somebody",
            ),
            models.CheckConstraint(
                condition=Q(state__in=_ENDS, ended_at__isnull=False)
                | (~Q(state__in=_ENDS) & Q(ended_at__isnull=True)),
                name="bulk_end_has_a_time",
            ),
            # What wants a second person has been seen by one before it runs.
            models.CheckConstraint(
                condition=Q(state__in=[BulkState.PREVIEWED, BulkState.WAITING])
                | Q(reasons=[])
                | (~Q(decided_by="") & ~Q(decision_note="") & Q(decided_at__isnull=False)),
                name="bulk_second_person_decided",
            ),
            models.CheckConstraint(
                condition=Q(state=BulkState.REJECTED) | ~Q(decided_by=F("made_by")),
                name="bulk_two_people",
            ),
        ]
        indexes = [
            # Serves: the sweep for runs that were left lying.
            models.Index(
                fields=["claimed_until"],
                condition=Q(state=BulkState.RUNNING),
                name="bulk_running",
            ),
            # Serves: the list of runs, newest first.
            models.Index(
                fields=["-id"],
                condition=~Q(state=BulkState.PREVIEWED),
                name="bulk_started",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="bulk_frozen",
                fields=[
                    *("id", "action", "selection", "retry_of", "rows", "acts", "counts", "sums"),
                    *("reasons", "made_by", "made_by_name", "made_at"),
                ],
            ),
            no_update_when(
                "bulk_goes_forward",
                'OLD."state" <> NEW."state" AND (OLD."state", NEW."state") NOT IN ('
                + ", ".join(f"('{before}', '{after}')" for before, after in _MOVES)
                + ")",
            ),
            # What people said, once they have said it.
            no_update_when(
                "bulk_said_once",
                'OLD."state" <> \'previewed\' AND (OLD."note", OLD."evidence_kind",'
                ' OLD."evidence_reference", OLD."started_at", OLD."assignee", OLD."assignee_name")'
                ' IS DISTINCT FROM (NEW."note", NEW."evidence_kind", NEW."evidence_reference",'
                ' NEW."started_at", NEW."assignee", NEW."assignee_name")'
                ' OR OLD."decided_by" <> \'\' AND (OLD."decided_by", OLD."decision_note")'
                ' IS DISTINCT FROM (NEW."decided_by", NEW."decision_note")'
                ' OR OLD."ended_at" IS NOT NULL',
            ),
            run_ends_with_its_rows(),
            pgtrigger.Protect(
                name="bulk_no_delete",
                operation=pgtrigger.Delete,
                condition=~pgtrigger.Q(old__state=BulkState.PREVIEWED.value),
            ),
            no_truncate("bulk"),
        ]

    def __str__(self) -> str:
        return f"{self.action} of {self.rows} by {self.made_by_name}"


class BulkRow(models.Model):
    """One operation of a run, or one `orphan`: a refund of the provider that belongs to none.

    `revision` is what the person saw of an operation, and `seen` the status of an orphan; `amount`
    in the Stripe unit.

    `outlook` and `why` are what the preview foresaw; `result` is what became of it, once. `refund`
    is the provider's refund that a closing as succeeded rests on. `detail` says more of the
    result: who changed it, or what went wrong; `said` is a refusal as a sentence that can be
    translated. `left_as` is the status it had then.
    """

    run = models.ForeignKey(BulkRun, on_delete=models.PROTECT, related_name="lines", db_index=False)
    place = models.PositiveIntegerField()
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="+", db_index=False, null=True, blank=True
    )
    orphan = models.ForeignKey(
        ProviderRefund,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        null=True,
        blank=True,
    )
    seen = models.CharField(max_length=64, blank=True, default="", db_default="")
    revision = models.PositiveIntegerField()
    amount = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    outlook = models.CharField(max_length=16)
    why = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    refund = models.CharField(max_length=255, blank=True, default="")
    result = models.CharField(max_length=16, blank=True, default="")
    detail = models.CharField(max_length=500, blank=True, default="")
    said = models.JSONField(null=True, blank=True)
    left_as = models.CharField(max_length=16, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "place"], name="bulk_row_place_once"),
            models.UniqueConstraint(fields=["run", "operation"], name="bulk_row_operation_once"),
            models.UniqueConstraint(fields=["run", "orphan"], name="bulk_row_orphan_once"),
            # It is of one thing, and what was seen of that is kept.
            models.CheckConstraint(
                condition=Q(operation__isnull=False, orphan__isnull=True, seen="")
                | (Q(operation__isnull=True, orphan__isnull=False, revision=0) & ~Q(seen="")),
                name="bulk_row_of_one_thing",
            ),
            models.CheckConstraint(
                condition=Q(outlook__in=sorted(Outlook)), name="bulk_row_outlook_known"
            ),
            models.CheckConstraint(
                condition=Q(result__in=BulkResult.values), name="bulk_row_result_known"
            ),
            models.CheckConstraint(
                condition=Q(result="", decided_at__isnull=True)
                | (~Q(result="") & Q(decided_at__isnull=False)),
                name="bulk_row_result_has_a_time",
            ),
            # What the preview said can't be done is not done.
            models.CheckConstraint(
                condition=~Q(outlook=str(Outlook.CANNOT))
                | Q(result__in=["", BulkResult.LEFT, BulkResult.STOPPED]),
                name="bulk_row_left_as_foreseen",
            ),
        ]
        indexes = [
            # Serves: what waits for its turn, in order.
            models.Index(fields=["run", "place"], condition=Q(result=""), name="bulk_row_waiting"),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="bulk_row_frozen",
                fields=[
                    *("id", "run", "place", "operation", "revision", "amount", "currency"),
                    *("outlook", "why", "refund", "orphan", "seen"),
                ],
            ),
            no_update_when("bulk_row_decided_once", "OLD.\"result\" <> ''"),
            only_in_a_running_run(),
            kept_once_its_run_began(),
            no_truncate("bulk_row"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}, {self.place}"

    @property
    def operation_pk(self) -> UUID:
        """Of a row that is of an operation, as all are whose run acts on operations."""
        if self.operation_id is None:
            raise ValueError(f"{self} is of no operation.")
        found: UUID = self.operation_id
        return found
