"""Imported reports: the provider's refund export as a file, its lines, and what became of each."""

import pgtrigger
from django.db import models
from django.db.models import F, Q

from operations.domain.report_preview import Preview
from operations.models.account import Account
from operations.models.triggers import never_removed, no_update_when

_BAD = str(Preview.BAD)


class ReportState(models.TextChoices):
    """How far an import is. Two of them are work in progress: reading and applying."""

    READING = "reading", "Reading"
    READ = "read", "Read, waits to be applied"
    REFUSED = "refused", "Can't be read"
    APPLYING = "applying", "Applying"
    APPLIED = "applied", "Applied"


class RowResult(models.TextChoices):
    """What became of one line. "" while it waits."""

    WAITING = "", "Waiting"
    APPLIED = "applied", "Changed an operation"
    NO_CHANGE = "no_change", "Nothing new"
    CONTRADICTS = "contradicts", "Contradicts: shown to people, nothing changed"
    NEEDS_LOOKUP = "needs_lookup", "Shows no payment of ours: a look-up was asked for"
    KEPT = "kept", "No operation of ours: kept as a refund made outside"
    UNMATCHED = "unmatched", "Names an operation that we do not have"
    OTHER_ENVIRONMENT = "other_environment", "Another environment's"
    FAILED = "failed", "Could not be applied"
    BAD = "bad", "Can't be read"


class ReportFile(models.Model):
    """One file. `content_hash` is the SHA-256 of its bytes and of how its columns were mapped.

    `read_to_line` and `read_bytes` say how far its reading is; `previewed` and `results` count its
    lines by what they would do and by what became of them. `claimed_until`: a worker is at it.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="report_files")
    name = models.CharField(max_length=255)
    content_hash = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    mapping = models.JSONField(default=dict)
    uploaded_by = models.CharField(max_length=255)
    uploaded_at = models.DateTimeField()

    state = models.CharField(max_length=16, default=ReportState.READING)
    problem = models.CharField(max_length=500, blank=True, default="")
    columns = models.JSONField(default=dict)
    read_to_line = models.PositiveIntegerField(default=0)
    read_bytes = models.BigIntegerField(default=0)
    rows = models.PositiveIntegerField(default=0)
    previewed = models.JSONField(default=dict)
    read_at = models.DateTimeField(null=True, blank=True)
    applied_by = models.JSONField(null=True, blank=True)
    apply_asked_at = models.DateTimeField(null=True, blank=True)
    applied_rows = models.PositiveIntegerField(default=0)
    results = models.JSONField(default=dict)
    applied_at = models.DateTimeField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # A file that can't be read may be tried again, say with another limit.
            models.UniqueConstraint(
                fields=["account", "content_hash"],
                condition=~Q(state=ReportState.REFUSED),
                name="report_file_once",
            ),
            models.CheckConstraint(
                condition=Q(state__in=ReportState.values), name="report_file_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(state=ReportState.REFUSED) | ~Q(problem=""),
                name="report_file_refused_says_why",
            ),
            models.CheckConstraint(
                condition=Q(applied_rows__lte=F("rows")), name="report_file_applied_at_most_once"
            ),
            # Nothing is applied that nobody asked for.
            models.CheckConstraint(
                condition=Q(state__in=[ReportState.READING, ReportState.READ, ReportState.REFUSED])
                | Q(apply_asked_at__isnull=False, applied_by__isnull=False),
                name="report_file_applied_was_asked",
            ),
        ]
        indexes = [
            # Serves: the sweep for work that was left lying.
            models.Index(
                fields=["claimed_until"],
                condition=Q(state__in=[ReportState.READING, ReportState.APPLYING]),
                name="report_file_in_work",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="report_file_frozen",
                fields=[
                    "id",
                    "account",
                    "name",
                    "content_hash",
                    "size_bytes",
                    "mapping",
                    "uploaded_by",
                    "uploaded_at",
                ],
            ),
            no_update_when(
                "report_file_goes_forward",
                'NEW."read_to_line" < OLD."read_to_line" OR NEW."rows" < OLD."rows"'
                " OR OLD.\"state\" = 'refused' AND NEW.\"state\" <> 'refused'"
                " OR OLD.\"state\" <> 'reading' AND NEW.\"state\" IN ('reading', 'refused')"
                ' AND NEW."state" <> OLD."state"',
            ),
            *never_removed("report_file"),
        ]

    def __str__(self) -> str:
        return self.name


class ReportPiece(models.Model):
    """A piece of a file's bytes, kept until it is read: any worker on any host can do that."""

    report = models.ForeignKey(ReportFile, on_delete=models.PROTECT, related_name="pieces")
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["report", "number"], name="report_piece_once"),
        ]
        triggers = [
            pgtrigger.Protect(name="report_piece_no_update", operation=pgtrigger.Update),
        ]

    def __str__(self) -> str:
        return f"{self.report_id} {self.number}"


class ReportRow(models.Model):
    """One line of a file, counted from 1 with the header. `amount` in the Stripe unit.

    `preview` is what it would have done when the file was read, `result` what became of it, once.
    `problem` says why a line is bad or failed.
    """

    report = models.ForeignKey(
        ReportFile, on_delete=models.PROTECT, related_name="lines", db_index=False
    )
    line = models.PositiveIntegerField()
    refund_id = models.CharField(max_length=255, blank=True, default="")
    charge = models.CharField(max_length=255, blank=True, default="")
    payment_intent = models.CharField(max_length=255, blank=True, default="")
    amount = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True, default="")
    status = models.CharField(max_length=64, blank=True, default="")
    created = models.BigIntegerField(default=0)
    failure_reason = models.CharField(max_length=500, blank=True, default="")
    metadata = models.JSONField(default=dict)
    preview = models.CharField(max_length=16)
    problem = models.CharField(max_length=500, blank=True, default="")
    result = models.CharField(max_length=32, blank=True, default="")
    operation_id = models.UUIDField(null=True, blank=True)
    applied_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["report", "line"], name="report_row_once"),
            models.CheckConstraint(
                condition=Q(preview__in=[str(kind) for kind in Preview]),
                name="report_row_preview_known",
            ),
            models.CheckConstraint(
                condition=Q(result__in=RowResult.values), name="report_row_result_known"
            ),
            # A line that can't be read says why and is never applied; any other tells of a refund.
            models.CheckConstraint(
                condition=(Q(preview=_BAD, result=RowResult.BAD) & ~Q(problem=""))
                | (
                    ~Q(preview=_BAD) & ~Q(result=RowResult.BAD) & ~Q(refund_id="") & Q(amount__gt=0)
                ),
                name="report_row_bad_or_whole",
            ),
        ]
        indexes = [
            # Serves: what waits to be applied, in order.
            models.Index(
                fields=["report", "line"],
                condition=Q(result=RowResult.WAITING),
                name="report_row_waiting",
            ),
            # Serves: the lines that people look at: bad ones and those that contradict.
            models.Index(
                fields=["report", "line"],
                condition=Q(preview__in=[_BAD, str(Preview.CONTRADICTS)]),
                name="report_row_to_look_at",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="report_row_frozen",
                fields=[
                    "id",
                    "report",
                    "line",
                    "refund_id",
                    "charge",
                    "payment_intent",
                    "amount",
                    "currency",
                    "status",
                    "created",
                    "failure_reason",
                    "metadata",
                    "preview",
                ],
            ),
            # One result for good; only what failed may be tried again.
            no_update_when(
                "report_row_applied_once",
                'OLD."result" NOT IN (\'\', \'failed\') AND NEW."result" <> OLD."result"',
            ),
            *never_removed("report_row"),
        ]

    def __str__(self) -> str:
        return f"{self.report_id}, line {self.line}"
