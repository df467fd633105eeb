"""The words for notices and their deliveries."""

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from operations.domain.notices import NoticeType
from operations.models import DeliveryState

TYPE: dict[str, Promise] = {
    NoticeType.SUCCEEDED: gettext_lazy("Refund succeeded"),
    NoticeType.FAILED: gettext_lazy("Refund failed"),
    NoticeType.UNKNOWN: gettext_lazy("Became unknown"),
    NoticeType.FLAGGED: gettext_lazy("Was flagged"),
    NoticeType.REOPENED: gettext_lazy("Was reopened"),
}


class Shown(NamedTuple):
    """How a state is shown: a word, a tone, an icon."""

    word: Promise
    tone: str
    icon: str


STATE: dict[str, Shown] = {
    DeliveryState.WAITING: Shown(gettext_lazy("Waiting"), "working", "clock"),
    DeliveryState.DELIVERED: Shown(gettext_lazy("Delivered"), "good", "check"),
    DeliveryState.FAILED: Shown(gettext_lazy("Given up"), "bad", "x"),
}
DISABLED = Shown(gettext_lazy("Disabled"), "bad", "pause")
FAILING = Shown(gettext_lazy("Failing"), "unknown", "warn")
WELL = Shown(gettext_lazy("Told"), "good", "check")
