"""Stripe's idempotency keys: the first answer of a key is saved and given again.

Source: Stripe, "Idempotent requests". The scope of a key (account and API key) is not confirmed;
this is the narrowest one, so that a change of either between two sends shows as a second refund.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from .answers import Answer, JsonObject, StripeError
from .params import Params
from .state import Clock, Record

KEY_LENGTH = 255
DEFAULT_WINDOW_S = 86_400

Scope = tuple[str, str, str]


class Found(enum.Enum):
    """What is known of a key when a request arrives with it."""

    NOTHING = "nothing"
    SAVED = "saved"
    IN_USE = "in_use"
    OTHER_REQUEST = "other_request"


@dataclass
class SavedKey:
    """A key, the request it was first used with, and the first answer once there is one.

    `running` can outlast the answer: a slow request has its effect before it lets go of the key.
    """

    scope: Scope
    fingerprint: str
    request_id: str
    created: float
    status: int | None = None
    body: str = ""
    running: bool = False

    def answer(self) -> Answer:
        """The saved answer, marked as a replay."""
        headers = {"Idempotent-Replayed": "true", "Original-Request": self.request_id}
        return Answer(self.status or 500, self.body.encode(), headers)

    def entry(self) -> JsonObject:
        """What the journal keeps; a request that was running does not survive a restart."""
        return {**vars(self), "scope": list(self.scope), "running": False}


def fingerprint(method: str, path: str, params: Params) -> str:
    """Equal for two requests with the same endpoint and the same parameters in any order."""
    return repr((method, path, params.pairs))


def check_length(key: str) -> None:
    """400 for a key longer than 255 characters; nothing is executed."""
    if len(key) > KEY_LENGTH:
        raise StripeError(
            400, f"Idempotency keys have at most {KEY_LENGTH} characters; got {len(key)}."
        )


class Keys:
    """All keys, forgotten `window_s` seconds after their first use on the sandbox's clock."""

    def __init__(self, clock: Clock, window_s: float, record: Record) -> None:
        self.clock = clock
        self.window_s = window_s
        self._record = record
        self._keys: dict[Scope, SavedKey] = {}

    def find(self, scope: Scope, wanted: str) -> tuple[Found, SavedKey | None]:
        """What is known of the key for a request with the fingerprint `wanted`."""
        saved = self._keys.get(scope)
        if saved is not None and not saved.running and self._is_over(saved):
            self._forget(saved)
            saved = None
        if saved is None:
            return Found.NOTHING, None
        if saved.fingerprint != wanted:
            return Found.OTHER_REQUEST, saved
        return (Found.IN_USE if saved.running else Found.SAVED), saved

    def begin(self, scope: Scope, wanted: str, request_id: str) -> SavedKey:
        """Mark the key as in use by the request that is about to be executed."""
        saved = SavedKey(scope, wanted, request_id, self.clock.now(), running=True)
        self._keys[scope] = saved
        return saved

    def save(self, saved: SavedKey, answer: Answer) -> None:
        """Keep the first answer, together with the effect that it tells of."""
        saved.status, saved.body = answer.status, answer.body.decode()
        self._record("key", saved.entry())

    def finish(self, saved: SavedKey) -> None:
        """Let go of the key; one whose request left no answer is free again."""
        saved.running = False
        if saved.status is None and self._keys.get(saved.scope) is saved:
            del self._keys[saved.scope]

    def expire(self, key: str | None = None) -> int:
        """Forget one key, or all that are not in use; says how many."""
        over = [
            saved
            for saved in self._keys.values()
            if not saved.running and key in (None, saved.scope[2])
        ]
        for saved in over:
            self._forget(saved)
        return len(over)

    def clear(self) -> None:
        """Forget everything, for a reset."""
        self._keys.clear()

    def restore(self, kind: str, payload: JsonObject) -> bool:
        """Take in one journal entry; says whether it was one of ours."""
        if kind == "key":
            account, api_key, key = payload["scope"]
            saved = SavedKey(**{**payload, "scope": (account, api_key, key)})
            self._keys[saved.scope] = saved
        elif kind == "key_over":
            self._keys.pop(tuple(payload["scope"]), None)
        else:
            return False
        return True

    def snapshot(self) -> Iterator[tuple[str, JsonObject]]:
        """Journal entries for all keys that are saved and not over."""
        for saved in self._keys.values():
            if saved.status is not None and not self._is_over(saved):
                yield "key", saved.entry()

    def _is_over(self, saved: SavedKey) -> bool:
        return self.clock.now() >= saved.created + self.window_s

    def _forget(self, saved: SavedKey) -> None:
        del self._keys[saved.scope]
        self._record("key_over", {"scope": list(saved.scope)})
