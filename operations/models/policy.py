"""What administrators allow beyond the default. A change adds a row; the newest one holds."""

from django.db import models
from django.db.models import Q

from operations.models.triggers import append_only


class PolicyName(models.TextChoices):
    """The policies there are. Each is off until somebody turns it on."""

    CLOSE_BY_ABSENCE = "close_by_absence", "Closing by absence"


class Policy(models.Model):
    """One decision about a policy: on or off, by whom, when and why. Times in UTC."""

    name = models.CharField(max_length=32, choices=PolicyName.choices)
    enabled = models.BooleanField()
    reason = models.TextField()
    set_by = models.CharField(max_length=255)
    set_by_name = models.CharField(max_length=255)
    set_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(name__in=PolicyName.values), name="policy_name_known"
            ),
            models.CheckConstraint(
                condition=~Q(reason="") & ~Q(set_by=""), name="policy_says_who_and_why"
            ),
        ]
        indexes = [
            # Serves: which decision holds.
            models.Index(fields=["name", "-id"], name="policy_newest"),
        ]
        triggers = [*append_only("policy")]

    def __str__(self) -> str:
        return f"{self.get_name_display()}: {'on' if self.enabled else 'off'}"

    @classmethod
    def is_on(cls, name: PolicyName) -> bool:
        """Whether the newest decision turned it on."""
        newest = cls.objects.filter(name=name).order_by("-id").values_list("enabled", flat=True)
        return bool(newest.first())
