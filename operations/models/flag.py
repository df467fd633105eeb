"""Why an attention flag was raised: one row for each fact, cleared by a person or standing."""

from datetime import datetime

import pgtrigger
from django.db import models
from django.db.models import Q

from operations.domain.contradiction import Contradiction, Side
from operations.domain.statuses import Attention
from operations.models import collecting
from operations.models.evidence import Evidence
from operations.models.operation import Operation
from operations.models.triggers import never_removed


class Flag(models.Model):
    """One contradiction, both facts side by side. Times in UTC.

    `fact` names it: the same one never raises a flag again, cleared or not. `sides` is a list of
    [what, ours, theirs]. `Operation.attention` is the summary of those that stand.
    """

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="flags")
    attention = models.CharField(max_length=32)
    fact = models.CharField(max_length=400)
    sides = models.JSONField()
    evidence = models.ForeignKey(Evidence, on_delete=models.PROTECT, related_name="+")
    raised_at = models.DateTimeField()
    cleared_at = models.DateTimeField(null=True, blank=True)
    cleared_by = models.CharField(max_length=255, blank=True, default="")
    cleared_by_name = models.CharField(max_length=255, blank=True, default="")
    clear_reason = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["operation", "attention", "fact"], name="flag_once_per_fact"
            ),
            models.CheckConstraint(
                condition=Q(attention__in=sorted(Attention)), name="flag_attention_known"
            ),
            models.CheckConstraint(condition=~Q(fact=""), name="flag_names_its_fact"),
            # Only a person clears a flag, and says why.
            models.CheckConstraint(
                condition=(
                    Q(cleared_at__isnull=True, cleared_by="", clear_reason="")
                    | (Q(cleared_at__isnull=False) & ~Q(cleared_by="") & ~Q(clear_reason=""))
                ),
                name="flag_clearing_is_whole",
            ),
        ]
        triggers = [
            pgtrigger.Protect(
                name="flag_cleared_once",
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__cleared_at__isnull=False),
            ),
            pgtrigger.ReadOnly(
                name="flag_frozen",
                fields=["id", "operation", "attention", "fact", "sides", "evidence", "raised_at"],
            ),
            *never_removed("flag"),
        ]

    def __str__(self) -> str:
        return f"{self.attention}: {self.fact}"

    @property
    def pairs(self) -> list[Side]:
        """The lines of the comparison."""
        return [Side(*row) for row in self.sides]

    @classmethod
    def is_known(cls, operation: Operation, contradiction: Contradiction) -> bool:
        """Whether this very fact has raised its flag before, whatever became of it.

        Also one that a transaction which collects its writes is only about to write.
        """
        key = (str(contradiction.attention), contradiction.fact)
        if key in cls._about_to_be_written(operation):
            return True
        return cls.objects.filter(operation=operation, attention=key[0], fact=key[1]).exists()

    @classmethod
    def keep(
        cls,
        operation: Operation,
        contradiction: Contradiction,
        *,
        evidence: Evidence,
        now: datetime,
    ) -> None:
        """Keep both facts beside the flag, for the page and for the next time they are told."""
        key = (str(contradiction.attention), contradiction.fact)
        cls._about_to_be_written(operation).add(key)
        collecting.insert(
            cls(
                operation=operation,
                attention=key[0],
                fact=key[1],
                sides=[[side.aspect, side.ours, side.theirs] for side in contradiction.sides],
                evidence=evidence,
                raised_at=now,
            )
        )

    @staticmethod
    def _about_to_be_written(operation: Operation) -> set[tuple[str, str]]:
        """The same object stands for a locked operation until its transaction ends."""
        keys: set[tuple[str, str]] = operation.__dict__.setdefault("raised_here", set())
        return keys
