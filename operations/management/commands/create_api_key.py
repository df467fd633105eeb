"""`manage.py create_api_key NAME`: make a key for a caller of the API."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from operations.management.acting import command_actor
from operations.services.engine import default_engine
from operations.services.keys import create_api_key


class Command(BaseCommand):
    """Prints the key, once, on a line of its own."""

    help = "Make an API key. It is printed once, on a line of its own, and kept only as a hash."

    def add_arguments(self, parser: CommandParser) -> None:
        """The name that people will recognise the key by."""
        parser.add_argument("name", metavar="NAME", help="who will use the key")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the key and print it."""
        name = options["name"].strip()
        if not 0 < len(name) <= 100:
            raise CommandError("NAME must have 1 to 100 characters.")
        if not name.isprintable():
            raise CommandError("NAME must have no control characters or broken Unicode.")
        actor = command_actor("create_api_key")
        _, secret = create_api_key(engine=default_engine(), name=name, actor=actor)
        self.stderr.write(f"Key for {name}. It is shown this once:")
        self.stdout.write(secret)
