"""The words for acting on many at once."""

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from operations.console import wording
from operations.domain.bulk import BulkAction, Hindrance, Outlook, RunReason
from operations.models import BulkResult, BulkState
from operations.services.looking_up import LookupResult


class Shown(NamedTuple):
    """A word with its icon and the tone of its mark."""

    word: str | Promise
    icon: str
    tone: str


ACTION: dict[str, Promise] = {
    BulkAction.LOOK_UP: _("Look up again"),
    BulkAction.MATCH_AGAIN: _("Match again"),
    BulkAction.CLAIM: _("Claim"),
    BulkAction.ASSIGN: _("Assign"),
    BulkAction.CLOSE_FAILED: _("Close as failed"),
    BulkAction.CLOSE_SUCCEEDED: _("Close as succeeded"),
    BulkAction.MARK_OUTSIDE: _("Mark as made outside"),
}
STATE: dict[str, Shown] = {
    BulkState.PREVIEWED: Shown(_("Preview"), "clock", "muted"),
    BulkState.WAITING: Shown(_("Waiting for a second person"), "people", "working"),
    BulkState.RUNNING: Shown(_("Running"), "processing", "working"),
    BulkState.ENDED: Shown(_("Ended"), "check", "good"),
    BulkState.REJECTED: Shown(_("Rejected"), "x", "bad"),
}
OUTLOOK: dict[str, Shown] = {
    Outlook.CANNOT: Shown(_("can't be done"), "x", "bad"),
    Outlook.SECOND: Shown(_("need a second person"), "people", "working"),
    Outlook.WILL: Shown(_("will be done"), "check", "good"),
}
#: What becomes of those that are done, and of the others.
THEN: dict[str, Promise] = {
    Outlook.CANNOT: _("stay as they are, reasons below"),
    Outlook.SECOND: _("stay as they are until that person agrees"),
    Outlook.WILL: _("each is checked again first"),
}
RESULT: dict[str, Shown] = {
    BulkResult.WAITING: Shown(_("Waiting"), "clock", "muted"),
    BulkResult.CLOSED: Shown(_("Closed"), "check", "good"),
    BulkResult.PROPOSED: Shown(_("Proposed to a second person"), "people", "working"),
    BulkResult.LOOKED_UP: Shown(_("Looked up"), "check", "good"),
    BulkResult.MATCHED: Shown(_("Matched"), "check", "good"),
    BulkResult.NOTHING_NEW: Shown(_("Nothing new"), "missing", "muted"),
    BulkResult.CLAIMED: Shown(_("Claimed"), "check", "good"),
    BulkResult.ASSIGNED: Shown(_("Assigned"), "person", "good"),
    BulkResult.MARKED: Shown(_("Marked as made outside"), "external", "good"),
    BulkResult.SKIPPED: Shown(_("Changed since, not touched"), "unknown", "unknown"),
    BulkResult.REFUSED: Shown(_("Not allowed any more, not touched"), "lock", "unknown"),
    BulkResult.LEFT: Shown(_("Left as foreseen"), "missing", "muted"),
    BulkResult.STOPPED: Shown(_("Stopped before its turn"), "stop", "muted"),
    BulkResult.FAILED: Shown(_("Could not be done"), "x", "bad"),
}
WHY: dict[str, Promise] = wording.SECOND_PERSON | {
    Hindrance.STILL_SENT: _("it may still be sent, or its end is reported by the provider"),
    Hindrance.SETTLED: _("it is settled already"),
    Hindrance.CLAIMED: _("somebody else works on it"),
    Hindrance.PROPOSED: _("a proposal waits for a second person"),
    Hindrance.CONTRADICTED: _("something contradicts it: decide it by itself"),
    Hindrance.NO_REFUND: _("no refund of it is known that counts"),
    Hindrance.BELONGS: _("it belongs to an operation by now"),
    Hindrance.FOUND: _("somebody found it to be made outside already"),
    Hindrance.GONE: _("it failed or was canceled: no money is out by it"),
}
RUN_WHY: dict[str, Promise] = {
    RunReason.ROWS: _("more refunds are decided at once than one person may"),
    RunReason.SUM: _("a sum is above what one person may decide at once"),
}
FOUND: dict[str, Promise] = {
    LookupResult.FOUND: _("The provider has a refund of it."),
    LookupResult.ABSENT: _("No refund of it was found."),
    LookupResult.INCOMPLETE: _("The list was not read to its end."),
    LookupResult.UNREADABLE: _("The provider could not be read."),
}
