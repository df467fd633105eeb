"""The audit trail of everything, for those who may see every account."""

from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from operations.console.downloads import csv_download
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.queries.audit_trail import MOST_LINES, Wanted, entries, lines, page_of
from operations.services.disclosing import note_disclosure
from operations.services.engine import default_engine


class TrailForm(forms.Form):
    """What is looked for. What can't be read narrows nothing, and says so."""

    who = forms.CharField(label=_("Who"), max_length=255, required=False)
    action = forms.RegexField(
        "^[a-z_]*$", label=_("What"), max_length=64, required=False, strip=True
    )
    operation = forms.UUIDField(label=_("Operation"), required=False)
    first = forms.DateField(label=_("From"), required=False)
    last = forms.DateField(label=_("Until"), required=False)

    def wanted(self) -> Wanted:
        """The fields that could be read."""
        self.is_valid()
        return Wanted(**{name: value for name, value in self.cleaned_data.items() if value})


@require_GET
@allows(Act.READ)
def trail(request: ConsoleRequest) -> HttpResponse:
    """A page of it, newest first."""
    form = TrailForm(request.GET)
    after = request.GET.get("after", "")
    place = int(after) if after.isdecimal() and len(after) < 19 else 0
    rows, next_after = page_of(form.wanted(), zone=_zone(), after=place)
    context: dict[str, Any] = {
        "form": form,
        "entries": rows,
        "next_after": next_after,
        "kept_query": _kept(request),
    }
    return answer(request, "operations/audit_trail.html", context)


@require_GET
@allows(Act.EXPORT)
def export(request: ConsoleRequest) -> HttpResponse:
    """What was found, as CSV. Who took it is written down first."""
    wanted = TrailForm(request.GET).wanted()
    note_disclosure(
        engine=default_engine(),
        actor=actor_of(request),
        action="exported",
        what={"what": "audit_trail", "found_by": _kept(request)},
    )
    found = entries(wanted, zone=_zone())[:MOST_LINES].iterator(chunk_size=2_000)
    return csv_download(lines(found), name="audit.csv")


def _kept(request: ConsoleRequest) -> str:
    """The filters as the end of an address, without the place in the list."""
    given = request.GET.copy()
    given.pop("after", None)
    for name in [name for name in given if not given[name] or name not in TrailForm.base_fields]:
        del given[name]
    return given.urlencode()


def _zone() -> ZoneInfo:
    return ZoneInfo(timezone.get_current_timezone_name())
