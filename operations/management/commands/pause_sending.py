"""`manage.py pause_sending ACCOUNT --reason "…"`: stop all sending on an account, or resume it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from operations.management.acting import command_actor
from operations.services.accounts import UnknownAccount, account_for
from operations.services.engine import default_engine
from operations.services.pausing import PauseRefused, pause_sending, resume_sending


class Command(BaseCommand):
    """Pauses, and with --resume lets it go on again."""

    help = "Stop sending refunds on an account; --resume lets it go on. Look-ups are not stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which account, and why."""
        parser.add_argument("account", metavar="ACCOUNT", help="our name of it, or the provider's")
        parser.add_argument("--reason", required=True, help="goes into the audit trail")
        parser.add_argument("--resume", action="store_true", help="let sending go on")

    def handle(self, *args: Any, **options: Any) -> None:
        """Pause or resume, and say so."""
        engine = default_engine()
        actor = command_actor("pause_sending")
        act = resume_sending if options["resume"] else pause_sending
        try:
            account = account_for(engine=engine, name=options["account"])
            act(engine=engine, account=account, reason=options["reason"], actor=actor)
        except UnknownAccount:
            raise CommandError(f"There is no account named {options['account']}.") from None
        except PauseRefused as error:
            raise CommandError(str(error)) from None
        state = "goes on" if options["resume"] else "is paused"
        self.stdout.write(f"Sending on {account.name} {state}.")
