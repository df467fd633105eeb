"""`manage.py audit_bundle OPERATION --out FILE`: all that is recorded of one operation, signed."""

from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from operations.management.acting import command_actor
from operations.services.bundling import UnknownOperation, bundle_of
from operations.services.engine import default_engine
from operations.services.sealing import signing_key


class Command(BaseCommand):
    """Writes a ZIP that verify_bundle, or `python -m operations.bundles`, can check."""

    help = "Write all that is recorded of an operation into a signed ZIP, secrets masked."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which operation, and where to."""
        parser.add_argument("operation", metavar="OPERATION", type=UUID)
        parser.add_argument("--out", type=Path, metavar="FILE", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Make it and write it."""
        path, operation_id = options["out"], options["operation"]
        try:
            with path.open("xb") as file:
                bundle = bundle_of(
                    engine=default_engine(),
                    operation_id=operation_id,
                    actor=command_actor("audit_bundle"),
                )
                file.write(bundle.content)
        except UnknownOperation:
            path.unlink()
            raise CommandError(f"There is no operation {operation_id}.", returncode=2) from None
        except OSError as error:
            raise CommandError(f"The bundle was not written: {error}.", returncode=2) from None
        self.stdout.write(f"Written to {path}")
        self.stdout.write(f"Public key {signing_key().public}")
