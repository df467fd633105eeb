"""What a provider promises, as data. Decisions follow from it, never from a provider's name."""

import re
from dataclasses import dataclass
from enum import StrEnum


class KeyLocation(StrEnum):
    """Where the idempotency key travels."""

    HEADER = "header"
    BODY = "body"
    NONE = "none"


class SavedAnswers(StrEnum):
    """Which answers the provider repeats for a key it remembers."""

    ALL_EXECUTED = "all_executed"
    SUCCESS_ONLY = "success_only"
    NOTHING = "nothing"


class FindBy(StrEnum):
    """How a refund whose answer was lost can be found."""

    ID = "id"
    PAYMENT = "payment"
    REFERENCE = "reference"


class Page(StrEnum):
    """What the provider's own console has a page for."""

    REFUND = "refund"
    PAYMENT = "payment"


#: An id that may stand in an address as it is.
_PLAIN_ID = re.compile(r"[A-Za-z0-9_]{1,255}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """The declared behaviour of one provider. Times in seconds, rates per second and account.

    `key_window_s` None: nobody states how long a key is remembered.
    `frozen_statuses`: answers that the provider repeats for the key as long as it lives.
    `concurrent_statuses`: what a second send gets while the first one with its key still runs; this
    second one executed nothing.
    `pending_statuses`: words of its own for "received, the end comes later".
    `lookup_conclusive_after_s` None: a list that lacks the refund never proves its absence.
    Rates None: no limit of ours.
    `pages`: addresses in the provider's own console, with `{id}`, for live mode and for test mode.
    """

    provider: str
    key_location: KeyLocation
    key_max_length: int
    key_window_s: int | None
    saved_answers: SavedAnswers
    frozen_statuses: frozenset[int]
    find_by: frozenset[FindBy]
    lookup_conclusive_after_s: int | None
    reads_per_s: float | None = None
    writes_per_s: float | None = None
    concurrent_statuses: frozenset[int] = frozenset([409])
    pending_statuses: frozenset[str] = frozenset()
    pages: tuple[tuple[Page, str, str], ...] = ()

    @property
    def has_key(self) -> bool:
        """Whether a send can be repeated under a key at all."""
        return self.key_location is not KeyLocation.NONE

    @property
    def replay_is_safe(self) -> bool:
        """Whether a send that may have been executed can be repeated without a second effect.

        Only when there is a key, its window is stated, and the first answer is repeated whatever
        it was: a provider that saves successes alone executes a failed send again.
        """
        return (
            self.has_key
            and self.key_window_s is not None
            and self.saved_answers is SavedAnswers.ALL_EXECUTED
        )

    def page_of(self, page: Page, object_id: str, *, livemode: bool) -> str:
        """The address of an object in the provider's own console; "" where there is none."""
        if not _PLAIN_ID.fullmatch(object_id):
            return ""
        for known, live, test in self.pages:
            if known is page:
                return (live if livemode else test).format(id=object_id)
        return ""
