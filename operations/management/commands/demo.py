"""`manage.py demo`: the Northwind story on a local stack."""

import argparse
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from operations.demo.show import Show
from reconcile.local.stack import StackError


class Command(BaseCommand):
    """Exits 1 if any order ended otherwise than it has to."""

    help = (
        "Start the local stack with its stand-in for Stripe, let an agent ask for the refunds of "
        "the Northwind story while everything fails, and show what came of each."
    )
    # The stack migrates before anything is checked against the database.
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """How long to stay, and in which form to answer."""
        parser.add_argument("--once", action="store_true", help="stop after the story")
        parser.add_argument(
            "--json",
            action="store_true",
            help="progress goes to standard error, the totals are the last line of the output",
        )
        parser.add_argument(
            "--port",
            type=_port,
            help="of the site; 0 for any (without it: 8000 if that is free)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Play the story, and stay until Ctrl-C unless told otherwise."""
        show = Show(
            data_dir=settings.RECONCILE.data_dir,
            out=self.stdout,
            progress=self.stderr if options["json"] else self.stdout,
            as_json=options["json"],
        )
        try:
            ok = show.run(port=options["port"], once=options["once"])
        except StackError as error:
            raise CommandError(str(error)) from None
        if not ok:
            raise SystemExit(1)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f'"{text}" is not a port number')
    return int(text)
