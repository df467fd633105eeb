"""`manage.py create_api_key NAME`: make a key for a caller of the API."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from operations.management.acting import command_actor
from operations.models import Account
from operations.services.accounts import UnknownAccount, account_for
from operations.services.engine import default_engine
from operations.services.keys import KeyRefused, KeyScope, create_api_key, end_of_day


class Command(BaseCommand):
    """Prints the key, once, on a line of its own."""

    help = "Make an API key. It is printed once, on a line of its own, and kept only as a hash."

    def add_arguments(self, parser: CommandParser) -> None:
        """The name that people will recognise the key by."""
        parser.add_argument("name", metavar="NAME", help="who will use the key")
        parser.add_argument(
            "--account",
            action="append",
            default=[],
            metavar="NAME",
            help="the only account it reaches, by name; may be given several times",
        )
        parser.add_argument("--read-only", action="store_true", help="it asks for no refunds")
        parser.add_argument("--expires", metavar="YYYY-MM-DD", help="its last day, in UTC")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the key and print it."""
        name = options["name"].strip()
        if not 0 < len(name) <= 100:
            raise CommandError("NAME must have 1 to 100 characters.")
        if not name.isprintable():
            raise CommandError("NAME must have no control characters or broken Unicode.")
        actor = command_actor("create_api_key")
        try:
            scope = KeyScope(
                accounts=[_account(text) for text in options["account"]],
                may_write=not options["read_only"],
                expires_at=end_of_day(options["expires"]) if options["expires"] else None,
            )
            _, secret = create_api_key(engine=default_engine(), name=name, actor=actor, scope=scope)
        except (KeyRefused, ValueError) as error:
            raise CommandError(str(error)) from None
        self.stderr.write(f"Key for {name}. It is shown this once:")
        self.stdout.write(secret)


def _account(text: str) -> Account:
    try:
        return account_for(engine=default_engine(), name=text)
    except UnknownAccount:
        raise CommandError(f'There is no account of the name "{text}".') from None
