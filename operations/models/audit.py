"""Append-only audit entries, chained by hash."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, models
from django.db.models import Q

from operations.domain.audit import CHAIN_START, Actor, ActorKind, ChainedEntry
from operations.domain.audit_walk import Stored
from operations.domain.masking import masked
from operations.domain.statuses import Status
from operations.models import collecting
from operations.models.statements import made
from operations.models.triggers import append_only, follows_the_last

#: The chain of what belongs to no operation (keys, roles).
SYSTEM_CHAIN = "system"


def chain_of(operation_id: UUID | None) -> str:
    """The chain that an operation's entries belong to."""
    return str(operation_id) if operation_id else SYSTEM_CHAIN


class AuditEntry(models.Model):
    """Who did what, when, from where, before and after, why, and on which evidence."""

    chain = models.CharField(max_length=64)
    number = models.PositiveIntegerField()
    operation_id = models.UUIDField(null=True, blank=True)
    at = models.DateTimeField()
    actor_kind = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=255)
    actor_name = models.CharField(max_length=255)
    actor_address = models.CharField(max_length=64, blank=True, default="")
    action = models.CharField(max_length=64)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    reason = models.TextField(blank=True, default="")
    evidence_id = models.CharField(max_length=64, blank=True, default="")
    previous_hash = models.CharField(max_length=64)
    entry_hash = models.CharField(max_length=64)

    class Meta:
        constraints = [
            # Serves the audit trail of an operation, too: its chain has its name.
            models.UniqueConstraint(fields=["chain", "number"], name="audit_number_once"),
            models.CheckConstraint(
                condition=Q(actor_kind__in=sorted(ActorKind)),
                name="audit_actor_known",
            ),
        ]
        indexes = [
            # Serves: counting, by hour, what became unknown and what was resolved. Hardly any entry
            # is about an unknown operation.
            models.Index(
                fields=["at"],
                condition=Q(before__status=Status.UNKNOWN) | Q(after__status=Status.UNKNOWN),
                name="audit_about_unknown",
            ),
        ]
        triggers = [
            follows_the_last(system_chain=SYSTEM_CHAIN, chain_start=CHAIN_START),
            *append_only("audit"),
        ]

    def __str__(self) -> str:
        return f"{self.chain} {self.number}: {self.action}"

    def chained(self) -> ChainedEntry:
        """The fields that the hash covers."""
        return ChainedEntry(
            chain=self.chain,
            number=self.number,
            at=self.at,
            actor=Actor(
                kind=ActorKind(self.actor_kind),
                id=self.actor_id,
                name=self.actor_name,
                address=self.actor_address,
            ),
            action=self.action,
            before=self.before,
            after=self.after,
            reason=self.reason,
            evidence_id=self.evidence_id,
            previous_hash=self.previous_hash,
        )

    @classmethod
    def append(
        cls,
        *,
        operation_id: UUID | None,
        actor: Actor,
        action: str,
        now: datetime,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
        reason: str = "",
        evidence_id: int | None = None,
    ) -> "AuditEntry":
        """Add the next entry of a chain. The caller holds the operation's lock, in a transaction.

        Entries without an operation share one chain, which is locked here until the commit.
        """
        chain = chain_of(operation_id)
        # What people type and providers answer may hold a secret; what is hashed is what is kept.
        before, after, reason = masked(before or {}), masked(after or {}), masked(reason)
        if operation_id is None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", ["audit-system"])
        number, previous = cls._tip(chain)
        entry = made(
            cls,
            chain=chain,
            number=number + 1,
            operation_id=operation_id,
            at=now,
            actor_kind=actor.kind,
            actor_id=actor.id,
            actor_name=actor.name,
            actor_address=actor.address,
            action=action,
            before=before,
            after=after,
            reason=reason,
            evidence_id=str(evidence_id or ""),
            previous_hash=previous,
            entry_hash="",
        )
        entry.entry_hash = entry.chained().digest()
        collecting.insert(entry)
        if (collected := collecting.current()) is not None:
            collected.tips[chain] = (entry.number, entry.entry_hash)
        return entry

    @classmethod
    def begin_chain(cls, operation_id: UUID) -> None:
        """Spare a look for the end of the chain of an operation that is only being inserted."""
        collected = collecting.current()
        if collected is not None:
            collected.tips[chain_of(operation_id)] = (0, CHAIN_START)

    @classmethod
    def _tip(cls, chain: str) -> tuple[int, str]:
        """Number and hash of the last entry of a chain, one that still waits to be sent included.

        Who has locked the chain may have read its end with the lock.
        """
        collected = collecting.current()
        if collected is not None and chain in collected.tips:
            return collected.tips[chain]
        last = (
            cls.objects.filter(chain=chain)
            .order_by("-number")
            .values_list("number", "entry_hash")
            .first()
        )
        return last or (0, CHAIN_START)


def stored(entry: AuditEntry) -> Stored:
    """An entry, ready to be walked."""
    try:
        chained = entry.chained()
    except ValueError:
        chained = None  # An actor that there is no kind of.
    return Stored(
        chain=entry.chain,
        belongs_to=chain_of(entry.operation_id),
        number=entry.number,
        previous_hash=entry.previous_hash,
        entry_hash=entry.entry_hash,
        label=f"{entry.action}, {entry.at.isoformat()}",
        entry=chained,
    )


def first_break(entries: Iterable[AuditEntry]) -> AuditEntry | None:
    """The first entry, of one chain in order, that does not follow from the one before.

    Entries that were cut off the end leave no trace in those before them; a seal tells of them.
    """
    number, previous = 0, CHAIN_START
    for entry in entries:
        follows = entry.number == number + 1 and entry.previous_hash == previous
        if not follows or not stored(entry).is_whole:
            return entry
        number, previous = entry.number, entry.entry_hash
    return None
