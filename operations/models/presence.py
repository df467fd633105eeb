"""Who has the page of an operation open."""

from django.db import models
from django.db.models import Q

from operations.models.operation import Operation


class Presence(models.Model):
    """A person looked at an operation at `seen_at` (UTC). A hint to colleagues, no record."""

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="presences", db_index=False
    )
    person = models.CharField(max_length=255)
    person_name = models.CharField(max_length=255)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            # Serves: who is looking at an operation.
            models.UniqueConstraint(fields=["operation", "person"], name="presence_once"),
            models.CheckConstraint(condition=~Q(person=""), name="presence_is_somebodys"),
        ]
        indexes = [
            # Serves: removing where a person has been.
            models.Index(fields=["person", "seen_at"], name="presence_by_person"),
        ]

    def __str__(self) -> str:
        return f"{self.person_name} at {self.operation_id}"
