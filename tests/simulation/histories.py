"""What was, at any time: read from the audit trail, which alone remembers it."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from operations.models import Attempt, AuditEntry, Operation
from operations.models.audit import first_break


@dataclass
class History:
    """One operation's row, attempts and audit entries, oldest first."""

    row: Operation
    attempts: list[Attempt] = field(default_factory=list)
    entries: list[AuditEntry] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The operation's id, as the provider's metadata has it."""
        return str(self.row.pk)

    @property
    def opened(self) -> int:
        """When it was opened, as a place in the order of all audit entries: clocks may be wrong."""
        return self.entries[0].pk if self.entries else 0

    def status_at(self, place: int) -> str:
        """The status at a place in that order; "" before the operation was opened."""
        status = ""
        for entry in self.entries:
            if entry.pk <= place:
                status = entry.after.get("status", status)
        return status

    def settled_at(self, place: int) -> datetime:
        """When, by the product's clock, the status that it had at that place began."""
        began, status = self.row.created_at, ""
        for entry in self.entries:
            if entry.pk <= place and entry.after.get("status", status) != status:
                began, status = entry.at, entry.after["status"]
        return began

    def statuses(self) -> list[str]:
        """Every status that it had, in order."""
        found: list[str] = []
        for entry in self.entries:
            status = entry.after.get("status", "")
            if status and found[-1:] != [status]:
                found.append(status)
        return found

    @property
    def closed_by_hand(self) -> bool:
        """Whether a person settled it as failed."""
        return any(
            entry.action == "closed_failed" and entry.actor_kind == "person"
            for entry in self.entries
        )

    def ever_shown(self) -> set[str]:
        """Every flag that ever asked for a person."""
        return {flag for entry in self.entries for flag in entry.after.get("attention", [])}

    def is_whole(self) -> bool:
        """Whether every entry follows from the one before."""
        return first_break(self.entries) is None


def read_histories() -> list[History]:
    """All operations as they stand, in three reads."""
    rows = Operation.objects.select_related("payment").order_by("created_at", "id")
    histories = {row.pk: History(row) for row in rows}
    attempts: dict[object, list[Attempt]] = defaultdict(list)
    for attempt in Attempt.objects.order_by("number"):
        attempts[attempt.operation_id].append(attempt)
    entries: dict[object, list[AuditEntry]] = defaultdict(list)
    for entry in AuditEntry.objects.order_by("number"):
        entries[entry.operation_id].append(entry)
    for operation_id, history in histories.items():
        history.attempts = attempts[operation_id]
        history.entries = entries[operation_id]
    return sorted(histories.values(), key=lambda history: history.opened)
