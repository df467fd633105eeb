"""Lists that people keep under a name."""

import pgtrigger
from django.db import models
from django.db.models import Q


class SavedView(models.Model):
    """A view with its filters and its order, as the query of its address.

    `owner` is the id of the person who keeps it. A shared one is offered to everybody.
    """

    name = models.CharField(max_length=60)
    owner = models.CharField(max_length=255)
    owner_name = models.CharField(max_length=255)
    shared = models.BooleanField(default=False)
    query = models.CharField(max_length=1_000)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            # Serves: what a person keeps.
            models.UniqueConstraint(fields=["owner", "name"], name="saved_view_name_once"),
            models.UniqueConstraint(
                fields=["name"], condition=Q(shared=True), name="saved_view_shared_name_once"
            ),
            models.CheckConstraint(
                condition=~Q(name="") & ~Q(owner=""), name="saved_view_has_a_name_and_an_owner"
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="saved_view_frozen", fields=["id", "owner", "query", "created_at"]
            ),
        ]

    def __str__(self) -> str:
        return self.name
