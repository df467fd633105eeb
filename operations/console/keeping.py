"""What somebody typed is kept across a sign-in.

The sign-in page that answers a form carries a signed copy of it for an hour; once signed in, the
copy goes into the session and fills the form again. Nothing is recorded on the way.
"""

from typing import Any

from django.core import signing
from django.http import HttpRequest
from django.urls import Resolver404, resolve, reverse

from operations.console.forms import LinkForm, OutsideForm

_SALT = "console-kept-form"
_LASTS_S = 3_600
_SESSION = "kept_form"
#: The fields that people fill in, and what the page showed them. Never a password or a file.
_FIELDS = (
    *("outcome", "kind", "reference", "note", "ground", "reason", "text", "typed"),
    *("attention", "operation", "revision", "seen", "form_token"),
)
_LONGEST = 4_000
#: The page that shows a form again, by the name of the address that it was sent to.
_PAGES = {
    "close": "close",
    "reopen": "reopen",
    "reissue": "reissue",
    "add-note": "operation",
    "approve": "operation",
    "reject": "operation",
    "clear-attention": "operation",
    "bulk-begin": "bulk-run",
    "bulk-approve": "bulk-run",
    "bulk-reject": "bulk-run",
    "take-over": "operation",
    "orphan-link": "orphan",
    "orphan-outside": "orphan",
    "orphan-total": "orphan-total",
    "orphan-event-link": "orphan-event",
    "orphan-event-outside": "orphan-event",
}


def page_of(request: HttpRequest) -> str:
    """Where the form of this POST is shown; "" when nothing of it is kept."""
    if request.content_type != "application/x-www-form-urlencoded":
        return ""
    try:
        found = resolve(request.path)
    except Resolver404:
        return ""
    page = _PAGES.get(found.url_name or "")
    # What the page is about is named first.
    return reverse(page, args=list(found.kwargs.values())[:1]) if page else ""


def signed_copy(request: HttpRequest) -> str:
    """The form that was sent, with the page that shows it, signed and dated."""
    fields = {
        name: request.POST[name][:_LONGEST]
        for name in _FIELDS
        if isinstance(request.POST.get(name), str)
    }
    kept = {"page": page_of(request), "fields": fields}
    return signing.dumps(kept, salt=_SALT, compress=True)


def take_in(request: HttpRequest, copy: str) -> str:
    """Put a signed copy into the session of who signed in; the page to go to, or "" for none."""
    try:
        kept = signing.loads(copy, salt=_SALT, max_age=_LASTS_S)
    except signing.BadSignature:
        return ""
    request.session[_SESSION] = kept
    return str(kept["page"])


def kept_fields(request: HttpRequest) -> dict[str, Any]:
    """What was kept for this page, once; empty when there is nothing."""
    kept = request.session.get(_SESSION)
    if not kept or kept["page"] != request.path:
        return {}
    del request.session[_SESSION]
    fields: dict[str, Any] = kept["fields"]
    return fields


def kept_orphan_forms(request: HttpRequest) -> dict[str, Any]:
    """The form of an orphan's page with what was typed before a sign-in, if anything was."""
    fields = kept_fields(request)
    if "operation" in fields:
        return {"link_form": LinkForm(initial=fields)}
    return {"outside_form": OutsideForm(initial=fields)} if fields else {}
