"""`manage.py verify_bundle FILE`: check an audit bundle. No database is asked."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from operations import bundles


class Command(BaseCommand):
    """Exits 1 when the bundle is not what was signed; 2 when it was called wrongly."""

    help = "Check the signature, the digests and the hash chain of an audit bundle."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Which file, and whose it must be."""
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument(
            "--public-key", metavar="HEX", default="", help="the key that must have signed it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Check it, and say what it holds."""
        try:
            packed = options["file"].read_bytes()
        except OSError as error:
            raise CommandError(str(error), returncode=2) from None
        try:
            self.stdout.write(bundles.told(packed, public=options["public_key"]))
        except bundles.BundleBroken as error:
            raise CommandError(str(error)) from None
