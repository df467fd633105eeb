"""`manage.py import_report FILE`: read a provider's refund export and show what it would do."""

import gc
import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy

from operations.domain.report_columns import ColumnMapping, MappingRefused, read_mapping
from operations.domain.report_preview import Preview
from operations.management.acting import command_actor
from operations.models.report_file import ReportFile, ReportState, RowResult
from operations.services.accounts import UnknownAccount, account_for
from operations.services.engine import default_engine
from operations.services.report_applying import apply_report
from operations.services.report_reading import read_report
from operations.services.reporting import ReportRefused, let_apply, receive_report

_PREVIEW = {
    Preview.MATCHES: ngettext_lazy("would change an operation", "would change operations", "count"),
    Preview.NEEDS_LOOKUP: ngettext_lazy(
        "names an operation on its word alone: the provider would be asked",
        "name operations on their word alone: the provider would be asked",
        "count",
    ),
    Preview.NOTHING_NEW: ngettext_lazy("says nothing new", "say nothing new", "count"),
    Preview.CONTRADICTS: ngettext_lazy(
        "contradicts an operation: it would be shown to people",
        "contradict operations: they would be shown to people",
        "count",
    ),
    Preview.UNKNOWN: ngettext_lazy(
        "is unknown to us: it would be kept as made outside",
        "are unknown to us: they would be kept as made outside",
        "count",
    ),
    Preview.BAD: ngettext_lazy("can't be read", "can't be read", "count"),
}


class Command(BaseCommand):
    """Reads the file and, with --apply, applies it; goes on where it was when it was stopped."""

    help = (
        "Import a provider's refund export (CSV; docs/reports.md has its columns). Without --apply"
        " only what it would do is shown."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Which file, for which account, and how its columns are called."""
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument("--account", default="", help="our name of it, or the provider's")
        parser.add_argument(
            "--mapping", metavar="FILE", type=Path, help="a JSON object that names other columns"
        )
        parser.add_argument("--apply", action="store_true", help="apply it after reading it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read, show, and apply if that was asked for."""
        engine = default_engine()
        self._engine = engine
        self._actor = command_actor("import_report")
        # A million lines make garbage; what is loaded by now is none.
        gc.collect()
        gc.freeze()
        report = self._received(options)
        read_report(engine=engine, report_id=report.pk, is_over=lambda: False, say=self._reading)
        report.refresh_from_db()
        if report.state == ReportState.READING:
            raise CommandError(_("Another process is reading this report. Run this again later."))
        if report.state == ReportState.REFUSED:
            raise CommandError(report.problem)
        self._show(report)
        if not options["apply"]:
            self.stdout.write(
                _(
                    "Nothing was changed. Apply it in the console (/reports/%(report)s/) or run"
                    " this again with --apply."
                )
                % {"report": report.pk}
            )
            return
        self._apply(report)

    def _received(self, options: dict[str, Any]) -> ReportFile:
        path: Path = options["file"]
        try:
            account = account_for(engine=self._engine, name=options["account"])
            with path.open("rb") as file:
                return receive_report(
                    engine=self._engine,
                    account=account,
                    name=path.name,
                    file=file,
                    mapping=_mapping(options["mapping"]),
                    most_bytes=settings.RECONCILE.report_max_mb * 2**20,
                    actor=self._actor,
                )
        except UnknownAccount:
            raise CommandError(
                _("There is no account named %(name)s.") % {"name": options["account"]}
            ) from None
        except OSError as error:
            raise CommandError(
                _("%(file)s can't be read: %(reason)s.") % {"file": path, "reason": error.strerror}
            ) from None
        except (ReportRefused, MappingRefused) as error:
            raise CommandError(str(error)) from None

    def _apply(self, report: ReportFile) -> None:
        if report.state != ReportState.APPLYING:
            try:
                let_apply(engine=self._engine, report_id=report.pk, actor=self._actor)
            except ReportRefused as error:
                raise CommandError(str(error)) from None
        apply_report(
            engine=self._engine, report_id=report.pk, is_over=lambda: False, say=self._applying
        )
        report.refresh_from_db()
        if report.state != ReportState.APPLIED:
            raise CommandError(_("Another process is applying this report. It goes on there."))
        for result in RowResult:
            count = report.results.get(result, 0)
            if count:
                self.stdout.write(f"{count:>10,}  {result.label}")

    def _show(self, report: ReportFile) -> None:
        told = ngettext("%(lines)s line:", "%(lines)s lines:", report.rows)
        self.stdout.write(told % {"lines": f"{report.rows:,}"})
        for kind, words in _PREVIEW.items():
            if count := report.previewed.get(kind, 0):
                self.stdout.write(f"{count:>10,}  {words % {'count': count}}")
        bad = report.lines.filter(preview=Preview.BAD).order_by("line")[:10]
        for row in bad:
            told = _("line %(line)s: %(problem)s")
            self.stdout.write("  " + told % {"line": row.line, "problem": row.problem})

    def _reading(self, report: ReportFile) -> None:
        share = 100 * report.read_bytes // max(1, report.size_bytes)
        told = ngettext(
            "read %(lines)s line, %(share)s %%", "read %(lines)s lines, %(share)s %%", report.rows
        )
        self.stderr.write(told % {"lines": f"{report.rows:,}", "share": share})

    def _applying(self, report: ReportFile) -> None:
        told = ngettext(
            "applied %(done)s of %(lines)s line",
            "applied %(done)s of %(lines)s lines",
            report.rows,
        )
        self.stderr.write(told % {"done": f"{report.applied_rows:,}", "lines": f"{report.rows:,}"})


def _mapping(path: Path | None) -> ColumnMapping:
    if path is None:
        return ColumnMapping()
    try:
        return read_mapping(json.loads(path.read_text("utf-8-sig")))
    except ValueError as error:
        if isinstance(error, MappingRefused):
            raise
        raise MappingRefused(_("%(file)s is not JSON.") % {"file": path}) from None
