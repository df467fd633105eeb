"""What people write beside an operation. It decides nothing."""

from django.db import models
from django.db.models import Q

from operations.models.operation import Operation
from operations.models.triggers import append_only


class Note(models.Model):
    """One remark of one person. `form_token` names the form it came with; times in UTC."""

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="notes", db_index=False
    )
    text = models.TextField()
    form_token = models.CharField(max_length=36)
    written_by = models.CharField(max_length=255)
    written_by_name = models.CharField(max_length=255)
    written_at = models.DateTimeField()

    class Meta:
        constraints = [
            # Serves the page of an operation, too. The same form sent twice is one note.
            models.UniqueConstraint(fields=["operation", "form_token"], name="note_form_once"),
            models.CheckConstraint(
                condition=~Q(text="") & ~Q(written_by=""), name="note_says_what_and_who"
            ),
        ]
        triggers = [*append_only("note")]

    def __str__(self) -> str:
        return f"{self.written_by_name}: {self.text[:60]}"
