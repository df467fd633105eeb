"""`manage.py run_local`: the whole product on this machine, until Ctrl-C."""

import argparse
import signal
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reconcile.local.stack import LocalStack, StackError


class Command(BaseCommand):
    help = (
        "Start database, broker, sandbox (when STRIPE_API_KEY is not set), web, worker and beat, "
        "print `ready http://127.0.0.1:PORT` when the site answers, and stop them all on Ctrl-C."
    )
    # The stack migrates before anything is checked against the database.
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=_port, default=8000, help="of the site; 0 for any")
        parser.add_argument("--workers", type=_count, default=2, help="web processes")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            stack = LocalStack(port=options["port"], web_workers=options["workers"])
        except StackError as error:
            raise CommandError(str(error)) from None

        def end(number: int, frame: FrameType | None) -> None:
            if stack.asked_to_stop.is_set():
                stack.kill()  # Asked a second time: no more waiting.
            stack.asked_to_stop.set()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, end)
        try:
            stack.start()
            stack.wait_ready()
            if not stack.asked_to_stop.is_set():
                self.stdout.write(f"ready {stack.url}")
                self.stdout.flush()
            stack.asked_to_stop.wait()
        except StackError as error:
            if not stack.asked_to_stop.is_set():
                raise CommandError(str(error)) from None
        finally:
            stack.stop()


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f'"{text}" is not a port number')
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number from 1 to 64')
    return int(text)
