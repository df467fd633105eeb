"""The words that the console has for statuses, reasons, flags and kinds, each with its icon."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.utils.dates import MONTHS_3
from django.utils.functional import Promise
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from operations.domain.absence import Lack
from operations.domain.closure import ClosingOutcome, EvidenceKind, ReopenGround, SecondPersonReason
from operations.domain.contradiction import Aspect
from operations.domain.matching import Field, Verdict
from operations.domain.orphans import EventReason, Hint, OrphanReason
from operations.domain.report_preview import Preview
from operations.domain.statuses import Attention, Status, UnknownReason
from operations.models import BackfillState
from operations.models.report_file import ReportState, RowResult

#: A key window this close to its end, in seconds, is shown as urgent.
SOON_S = 300

STATUS: dict[str, Promise] = {
    Status.OPEN: gettext_lazy("Open"),
    Status.PROCESSING: gettext_lazy("Processing"),
    Status.UNKNOWN: gettext_lazy("Unknown"),
    Status.SUCCEEDED: gettext_lazy("Succeeded"),
    Status.FAILED: gettext_lazy("Failed"),
}
REASON: dict[str, Promise] = {
    UnknownReason.SERVER_ERROR: gettext_lazy("Provider answered 500"),
    UnknownReason.BUDGET_SPENT: gettext_lazy("Attempt budget used up"),
    UnknownReason.DEADLINE_PASSED: gettext_lazy("Deadline passed"),
    UnknownReason.KEY_WINDOW_CLOSED: gettext_lazy("Key window closed"),
    UnknownReason.KEY_RETENTION_UNCLEAR: gettext_lazy("Retention unclear"),
    UnknownReason.INTERRUPTED: gettext_lazy("Interrupted while sending"),
    UnknownReason.UNSAFE_REFUSAL: gettext_lazy("Refusal proves nothing"),
    UnknownReason.UNREADABLE_ANSWER: gettext_lazy("Unreadable answer"),
    UnknownReason.REOPENED: gettext_lazy("Reopened by people"),
}
ATTENTION: dict[str, Promise] = {
    Attention.CONFLICT: gettext_lazy("Conflict"),
    Attention.DUPLICATE_REFUND: gettext_lazy("Duplicate refund"),
    Attention.MISMATCH: gettext_lazy("Mismatch"),
    Attention.FAILED_AFTER_SUCCESS: gettext_lazy("Failed after success"),
    Attention.DISPUTED: gettext_lazy("Disputed"),
    Attention.CONFIGURATION: gettext_lazy("Configuration"),
}
ATTENTION_MEANS: dict[str, Promise] = {
    Attention.CONFLICT: gettext_lazy("Settled here, and the provider says the opposite."),
    Attention.DUPLICATE_REFUND: gettext_lazy("Two refunds carry this operation."),
    Attention.MISMATCH: gettext_lazy("Our reference, but other terms or another place."),
    Attention.FAILED_AFTER_SUCCESS: gettext_lazy("It had succeeded; the money counts no more."),
    Attention.DISPUTED: gettext_lazy("The customer disputes the payment. It closes nothing."),
    Attention.CONFIGURATION: gettext_lazy("Key, account or mode were refused."),
}
ATTENTION_ICON: dict[str, str] = {
    Attention.CONFLICT: "conflict",
    Attention.DUPLICATE_REFUND: "duplicate",
    Attention.MISMATCH: "mismatch",
    Attention.FAILED_AFTER_SUCCESS: "reversed",
    Attention.DISPUTED: "disputed",
    Attention.CONFIGURATION: "lock",
}
OUTCOME: dict[str, Promise] = {
    ClosingOutcome.SUCCEEDED: gettext_lazy("Succeeded"),
    ClosingOutcome.FAILED: gettext_lazy("Failed"),
}
EVIDENCE: dict[str, Promise] = {
    EvidenceKind.PROVIDER_REFUND: gettext_lazy("Refund seen by its id"),
    EvidenceKind.DASHBOARD: gettext_lazy("Seen in the provider's dashboard"),
    EvidenceKind.PROVIDER_SUPPORT: gettext_lazy("The provider's support answered"),
    EvidenceKind.BANK_STATEMENT: gettext_lazy("Bank or card statement"),
    EvidenceKind.ABSENT_IN_LOOKUP: gettext_lazy("Absent: look-ups found no refund"),
}
GROUND: dict[str, Promise] = {
    ReopenGround.CONTRADICTED: gettext_lazy("Evidence contradicts it"),
    ReopenGround.MISTAKE: gettext_lazy("It was a mistake"),
}
SECOND_PERSON: dict[str, Promise] = {
    SecondPersonReason.AMOUNT: gettext_lazy("the amount is above the limit for one person"),
    SecondPersonReason.NO_FRESH_ABSENCE: gettext_lazy(
        "no complete look-up of the last 15 minutes shows that the refund is absent"
    ),
    SecondPersonReason.ABSENCE_ALONE: gettext_lazy("nothing but an absence speaks for it"),
    SecondPersonReason.CONTRADICTION: gettext_lazy("something contradicts this outcome"),
    SecondPersonReason.REOPENING: gettext_lazy("a closing is taken back by two people only"),
}
FIELD: dict[str, Promise] = {
    Field.AMOUNT: gettext_lazy("Amount"),
    Field.CURRENCY: gettext_lazy("Currency"),
    Field.CHARGE: gettext_lazy("Charge"),
    Field.PAYMENT_INTENT: gettext_lazy("Payment"),
    Field.REFERENCE: gettext_lazy("Reference"),
    Field.ACCOUNT: gettext_lazy("Account"),
    Field.MODE: gettext_lazy("Mode"),
}


ASPECT: dict[str, Promise] = FIELD | {
    Aspect.OUTCOME: gettext_lazy("Outcome"),
    Aspect.REFUND: gettext_lazy("Refund"),
    Aspect.OPERATION: gettext_lazy("Operation"),
    Aspect.SENDING: gettext_lazy("Sending"),
    Aspect.DISPUTE: gettext_lazy("Dispute"),
}


LACK: dict[str, Promise] = {
    Lack.NOT_LOOKED: gettext_lazy("No look-up found it absent."),
    Lack.LIST_PROVES_NOTHING: gettext_lazy("This provider's list can't show an absence."),
    Lack.INCOMPLETE: gettext_lazy("The list was not read to its end."),
    Lack.SENT_SINCE: gettext_lazy("Something was sent after the last look-up."),
    Lack.TOO_SOON: gettext_lazy("It was too soon after the last send: the list lags."),
    Lack.TOTAL_NOT_READ: gettext_lazy("The provider's total could not be read."),
    Lack.UNEXPLAINED: gettext_lazy("The provider's total is not explained by the refunds listed."),
    Lack.NOT_TWICE: gettext_lazy("No two look-ups five minutes apart showed the same."),
}
ORPHAN: dict[str, Promise] = {
    OrphanReason.NO_REFERENCE: gettext_lazy("No reference"),
    OrphanReason.REFERENCE_UNKNOWN: gettext_lazy("Reference unknown"),
    OrphanReason.DIFFERS: gettext_lazy("Claims an operation but differs"),
    OrphanReason.NOT_OUR_PAYMENT: gettext_lazy("Payment not ours"),
    EventReason.NOT_OUR_ACCOUNT: gettext_lazy("Account not ours"),
    EventReason.NO_REFUND: gettext_lazy("Refund not seen"),
    EventReason.NOT_OUR_PAYMENT: gettext_lazy("Payment not ours"),
}
ORPHAN_MEANS: dict[str, Promise] = {
    OrphanReason.NO_REFERENCE: gettext_lazy("Nothing in the refund names an operation."),
    OrphanReason.REFERENCE_UNKNOWN: gettext_lazy(
        "It names an operation that is in none of our records."
    ),
    OrphanReason.DIFFERS: gettext_lazy("It names an operation of ours with other terms."),
    OrphanReason.NOT_OUR_PAYMENT: gettext_lazy("No operation was ever asked for on its payment."),
    EventReason.NOT_OUR_ACCOUNT: gettext_lazy("It came from an account that is not set up here."),
    EventReason.NO_REFUND: gettext_lazy(
        "It says that money went back on a payment of ours, and no refund that we know is it."
    ),
    EventReason.NOT_OUR_PAYMENT: gettext_lazy(
        "It says that money went back on a payment that no operation was ever asked for."
    ),
}
HINT: dict[str, Promise] = {
    Hint.PAYMENT: gettext_lazy("Same payment"),
    Hint.AMOUNT: gettext_lazy("Amount"),
    Hint.CURRENCY: gettext_lazy("Currency"),
    Hint.TIME: gettext_lazy("Made after the first send"),
    Hint.FREE: gettext_lazy("Has no refund yet"),
    Hint.REFERENCE: gettext_lazy("Reference"),
}


class Verdicted(NamedTuple):
    """How a comparison's result is shown."""

    word: Promise
    tone: str
    icon: str


VERDICT: dict[str, Verdicted] = {
    Verdict.SAME: Verdicted(gettext_lazy("Match"), "good", "check"),
    Verdict.DIFFERENT: Verdicted(gettext_lazy("Differs"), "bad", "mismatch"),
    Verdict.MISSING: Verdicted(gettext_lazy("Missing"), "muted", "missing"),
}
#: What somebody did, as a sentence about them.
ACTION: dict[str, Promise] = {
    "opened": gettext_lazy("{who} opened this operation"),
    "send_refused": gettext_lazy("{who} recorded that the send was refused"),
    "left_undecided": gettext_lazy("{who} marked it unknown"),
    "provider_pending": gettext_lazy("{who} recorded it as processing"),
    "provider_succeeded": gettext_lazy("{who} recorded that it succeeded"),
    "provider_failed": gettext_lazy("{who} recorded that it failed"),
    "closed_succeeded": gettext_lazy("{who} closed it as succeeded"),
    "closed_failed": gettext_lazy("{who} closed it as failed"),
    "attention_raised": gettext_lazy("{who} raised a flag"),
    "attention_cleared": gettext_lazy("{who} cleared a flag"),
    "refund_linked": gettext_lazy("{who} linked a refund"),
    "claimed": gettext_lazy("{who} claimed it"),
    "assigned": gettext_lazy("{who} left it to somebody else"),
    "matched_again": gettext_lazy("{who} had what is stored matched again"),
    "claim_released": gettext_lazy("{who} gave it back"),
    "claim_taken_over": gettext_lazy("{who} took it over"),
    "proposed": gettext_lazy("{who} proposed a closing"),
    "proposal_rejected": gettext_lazy("{who} disagreed with the proposal"),
    "reopened": gettext_lazy("{who} reopened it"),
    "reopening_proposed": gettext_lazy("{who} proposed to reopen it"),
    "noted": gettext_lazy("{who} wrote a note"),
    "reissue_asked": gettext_lazy("{who} asked for a new refund in its place"),
    "reissue_refused": gettext_lazy("{who} got no new refund in its place"),
    "reissued": gettext_lazy("{who} had a new refund opened in its place"),
}
CLOSED_AS: dict[str, Promise] = {
    "closed_succeeded": gettext_lazy("Closed as succeeded."),
    "closed_failed": gettext_lazy("Closed as failed."),
    "reopened": gettext_lazy("Reopened."),
}
SOURCE: dict[str, Promise] = {
    "answer": gettext_lazy("Answer"),
    "webhook": gettext_lazy("Webhook"),
    "lookup": gettext_lazy("Look-up"),
    "report_row": gettext_lazy("Report"),
    "statement": gettext_lazy("Statement"),
}
BACKFILL_STATE: dict[str, Promise] = {
    BackfillState.RUNNING: gettext_lazy("Running"),
    BackfillState.DONE: gettext_lazy("Done"),
    BackfillState.FAILED: gettext_lazy("Stopped"),
}
REPORT_STATE: dict[str, Promise] = {
    ReportState.READING: gettext_lazy("Reading"),
    ReportState.READ: gettext_lazy("Waits to be applied"),
    ReportState.REFUSED: gettext_lazy("Can't be read"),
    ReportState.APPLYING: gettext_lazy("Applying"),
    ReportState.APPLIED: gettext_lazy("Applied"),
}
FORESEEN: dict[str, Promise] = {
    Preview.MATCHES: gettext_lazy("Changes an operation"),
    Preview.NEEDS_LOOKUP: gettext_lazy("The provider is asked"),
    Preview.NOTHING_NEW: gettext_lazy("Nothing new"),
    Preview.CONTRADICTS: gettext_lazy("Contradicts"),
    Preview.UNKNOWN: gettext_lazy("Unknown to us"),
    Preview.BAD: gettext_lazy("Can't be read"),
}
LINE_RESULT: dict[str, Promise] = {
    RowResult.APPLIED: gettext_lazy("Changed"),
    RowResult.NO_CHANGE: gettext_lazy("Nothing new"),
    RowResult.CONTRADICTS: gettext_lazy("Contradicts, shown to people"),
    RowResult.NEEDS_LOOKUP: gettext_lazy("Shows no payment of ours, a look-up was asked for"),
    RowResult.KEPT: gettext_lazy("Kept as made outside"),
    RowResult.UNMATCHED: gettext_lazy("Names an operation we do not have"),
    RowResult.OTHER_ENVIRONMENT: gettext_lazy("Another environment's"),
    RowResult.FAILED: gettext_lazy("Could not be applied"),
    RowResult.BAD: gettext_lazy("Can't be read"),
}
ADVICE_ICON: dict[str, str] = {
    "look_up": "search",
    "second_person": "people",
    "review_refunds": "people",
    "compare": "compare",
    "close_failed": "failed",
    "check_account": "lock",
    "tell_customer": "message",
    "wait": "pause",
    "nothing": "check",
}


class KeyWindow(NamedTuple):
    """The key window at one moment. `state` is open, soon, closed or none."""

    state: str
    text: str
    icon: str
    #: The end, while minutes and seconds are shown: they count down in the browser.
    closes: str = ""


def key_window(closes_at: datetime | None, *, started: bool, now: datetime) -> KeyWindow:
    """How long the key can still be relied on, in words."""
    if closes_at is None:
        text = _("Not stated") if started else _("Not started")
        return KeyWindow("none", text, "missing")
    left = int((closes_at - now).total_seconds())
    if left <= 0:
        return KeyWindow("closed", _("Closed"), "lock")
    if left < 3_600:
        state, icon = ("soon", "hourglass") if left < SOON_S else ("open", "clock")
        text = _("Closes in {time}").format(time=f"{left // 60:02}:{left % 60:02}")
        return KeyWindow(state, text, icon, f"{closes_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")
    return KeyWindow("open", _("{time} left").format(time=duration(closes_at - now)), "clock")


def duration(span: timedelta) -> str:
    """`50 s`, `12 m`, `3 h 12 m`, `2 d 18 h`: the two largest units, never negative."""
    seconds = max(0, int(span.total_seconds()))
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes:02} m"
    return f"{minutes} m" if minutes else f"{seconds} s"


def clock(at: datetime, now: datetime) -> str:
    """The time of day in the reader's time zone, with the date when it is not today."""
    zone = get_current_timezone()
    at, now = at.astimezone(zone), now.astimezone(zone)
    if at.date() == now.date():
        return at.time().isoformat("seconds")
    if at.year == now.year:
        return f"{at.day} {str(MONTHS_3[at.month]).capitalize()}, {at:%H:%M:%S}"
    return f"{at:%Y-%m-%d %H:%M:%S}"
