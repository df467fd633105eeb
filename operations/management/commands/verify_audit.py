"""`manage.py verify_audit`: check every chain of the audit trail."""

from itertools import groupby
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from operations.models import AuditEntry
from operations.models.audit import first_break


class Command(BaseCommand):
    """Exits 1 and names the first broken entry."""

    help = "Check the hash chains of the audit trail; exits 1 and names the first broken entry."

    def handle(self, *args: Any, **options: Any) -> None:
        """Walk all entries, chain by chain."""
        entries = AuditEntry.objects.order_by("chain", "number").iterator(chunk_size=2_000)
        chains = count = 0
        for chain, rows in groupby(entries, key=lambda entry: entry.chain):
            chains += 1
            kept = list(rows)
            count += len(kept)
            broken = first_break(kept)
            if broken is not None:
                raise CommandError(
                    f"Chain {chain} is broken at entry {broken.number} "
                    f"({broken.action}, {broken.at.isoformat()})."
                )
        self.stdout.write(f"{count} entries in {chains} chains: whole.")
