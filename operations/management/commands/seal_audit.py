"""`manage.py seal_audit`: seal the audit trail into a file to be kept elsewhere."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from operations.management.acting import command_actor
from operations.services.engine import default_engine
from operations.services.sealing import seal_to_file, seal_to_folder, signing_key


class Command(BaseCommand):
    """Prints where the seal is, and the public key that it is checked with."""

    help = "Seal all chains of the audit trail into a signed file, for verify_audit --seal."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to."""
        parser.add_argument("--out", type=Path, metavar="FILE", help="a file that isn't there yet")

    def handle(self, *args: Any, **options: Any) -> None:
        """Seal."""
        engine, actor, path = default_engine(), command_actor("seal_audit"), options["out"]
        if path is not None and path.exists():
            raise CommandError(f"{path} is there already; a seal overwrites nothing.", returncode=2)
        try:
            if path is None:
                path = seal_to_folder(engine=engine, actor=actor)
            else:
                seal_to_file(engine=engine, path=path, actor=actor)
        except OSError as error:
            raise CommandError(f"The seal was not written: {error}.", returncode=2) from None
        self.stdout.write(f"Sealed into {path}")
        self.stdout.write(f"Public key {signing_key().public}")
