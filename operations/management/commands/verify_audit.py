"""`manage.py verify_audit`: check every chain of the audit trail."""

from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from operations.domain.audit_walk import Walked
from operations.domain.seals import NoSeal
from operations.queries.verifying import (
    SealBroken,
    believed,
    heads_of,
    verify_chains,
    verify_seals,
)
from operations.services.sealing import signing_key


class Command(BaseCommand):
    """Exits 1 and names the first broken entry; 2 when it was called wrongly."""

    help = (
        "Check the hash chains of the audit trail, and against a seal that nothing which it covers"
        " was changed, cut off or removed; exits 1 and names the first broken entry."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """What to check against."""
        parser.add_argument("--seal", type=Path, metavar="FILE", help="a seal made by seal_audit")
        parser.add_argument(
            "--public-key",
            metavar="HEX",
            help="the key that the seal was signed with, if it is not the one in use",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Walk all entries, chain by chain."""
        path, key = options["seal"], options["public_key"]
        if key and path is None:
            raise CommandError("--public-key goes with --seal.", returncode=2)
        try:
            seals = verify_seals()
            if path is None:
                self._tell(verify_chains(), seals)
                return
            with path.open("rb") as file:
                self._against(file, key or signing_key().public, seals)
        except OSError as error:
            raise CommandError(f"The seal can't be read: {error}.", returncode=2) from None
        except (SealBroken, NoSeal) as error:
            raise CommandError(str(error)) from None

    def _against(self, file: BinaryIO, key: str, seals: int) -> None:
        seal = believed(file, public=key).seal
        self._tell(verify_chains(heads_of(file)), seals)
        self.stdout.write(
            f"All {seal.entries} entries of seal {seal.number}, made {seal.at}, are there as they"
            " were."
        )

    def _tell(self, walked: Walked, seals: int) -> None:
        broken = walked.broken
        if broken is not None:
            label = f" ({broken.label})" if broken.label else ""
            raise CommandError(
                f"Chain {broken.chain} is broken at entry {broken.number}{label}: {broken.why}."
            )
        self.stdout.write(
            f"{walked.entries} entries in {walked.chains} chains: whole. {seals} seals in line."
        )
