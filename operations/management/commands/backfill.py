"""`manage.py backfill --since 6h`: fetch the provider's events and handle what is new."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from operations.domain.backfilling import SinceRefused, read_since
from operations.jobs import handle_waiting_events
from operations.management.acting import command_actor
from operations.models import Account, BackfillRun, BackfillState, Handling
from operations.queries.backfills import changes_of
from operations.services.accounts import UnknownAccount, account_for
from operations.services.backfilling import (
    BackfillRefused,
    fetch_events,
    go_on,
    start_backfill,
)
from operations.services.engine import default_engine


class Command(BaseCommand):
    """Fetches, then handles the inbox, and says what it came to."""

    help = "Fetch the provider's events of up to 30 days that no webhook brought, and handle them."

    def add_arguments(self, parser: CommandParser) -> None:
        """From when on, or which run is to go on."""
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "--since", help="a time such as 2026-05-31T17:45 (UTC), or how long ago: 90m, 6h, 3d"
        )
        which.add_argument("--run", type=int, help="go on with this run, which was stopped")
        parser.add_argument("--account", default=None, help="only this one; without it, every one")

    def handle(self, *args: Any, **options: Any) -> None:
        """One run an account, one after the other."""
        self._engine = default_engine()
        self._actor = command_actor("backfill")
        runs = [self._again(options["run"])] if options["run"] else self._begun(options)
        for run in runs:
            self._fetch(run)

    def _begun(self, options: dict[str, Any]) -> list[BackfillRun]:
        engine = self._engine
        try:
            since = read_since(options["since"], now=engine.clock())
            account_for(engine=engine, name="")
            accounts = (
                list(Account.objects.filter(livemode=engine.livemode).order_by("name"))
                if options["account"] is None
                else [account_for(engine=engine, name=options["account"])]
            )
            return [
                start_backfill(engine=engine, account=account, since=since, actor=self._actor)
                for account in accounts
            ]
        except UnknownAccount:
            raise CommandError(f"There is no account named {options['account']}.") from None
        except (SinceRefused, BackfillRefused) as error:
            raise CommandError(str(error)) from None

    def _again(self, run_id: int) -> BackfillRun:
        run = BackfillRun.objects.filter(pk=run_id).first()
        if run is None:
            raise CommandError(f"There is no run {run_id}.")
        if run.state == BackfillState.FAILED:
            go_on(engine=self._engine, run_id=run_id, actor=self._actor)
        return run

    def _fetch(self, run: BackfillRun) -> None:
        fetch_events(engine=self._engine, run_id=run.pk, is_over=lambda: False, say=self._progress)
        run.refresh_from_db()
        if run.state != BackfillState.DONE:
            raise CommandError(
                f"Stopped after {run.read:,} events: {run.problem or 'another process goes on'}."
                f" Go on with: backfill --run {run.pk}"
            )
        handle_waiting_events()
        self.stdout.write(
            f"{run.account.name}: {run.read:,} events read, {run.stored:,} new,"
            f" {run.read - run.stored:,} known."
        )
        for handling, count in sorted(changes_of(run).items()):
            self.stdout.write(f"{count:>10,}  {Handling(handling).label}")

    def _progress(self, run: BackfillRun) -> None:
        self.stderr.write(f"{run.account.name}: page {run.pages}, {run.read:,} events read")
