"""The AI agent's side: it asks over HTTP, and remembers what it was told."""

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# This machine is reached directly, whatever proxy the environment names.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_TIMEOUT_S = 30.0

NO_ANSWER = "no answer"
IN_PROGRESS = "in_progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One answer in a word: a status, a problem's code, or `422` with the field it is about."""

    word: str
    operation_id: str = ""
    provider_object_id: str = ""
    retry_after_s: float = 1.0


class Agent:
    """One run of an agent, for one order. Its methods may be called from several threads."""

    def __init__(
        self, *, url: str, api_key: str, run_id: str, on_told: Callable[[Told], None]
    ) -> None:
        self._url = url
        self._api_key = api_key
        self._run_id = run_id
        self._on_told = on_told
        self._guard = threading.Lock()
        self._news: list[Told] = []

    def ask(self, wish: Mapping[str, Any], *, tool_call: str) -> Told:
        """Ask for a refund by one tool call; a connection that breaks is an answer, too."""
        body = {**wish, "tool_call_id": tool_call, "agent_run_id": self._run_id}
        return self._hear(self._call("POST", "refunds", body))

    def ask_until_answered(self, wish: Mapping[str, Any], *, tool_call: str, until: float) -> Told:
        """The same, again after each `in_progress`, until the monotonic time `until`."""
        told = self.ask(wish, tool_call=tool_call)
        while told.word == IN_PROGRESS and time.monotonic() < until:
            time.sleep(told.retry_after_s)
            told = self.ask(wish, tool_call=tool_call)
        return told

    def read(self, operation_id: str) -> Told:
        """Ask how an operation stands; this never sends anything."""
        return self._hear(self._call("GET", f"refunds/{operation_id}"))

    def operations(self) -> list[str]:
        """The ids of the operations it heard of, oldest first."""
        with self._guard:
            return list(dict.fromkeys(t.operation_id for t in self._news if t.operation_id))

    def words(self) -> list[str]:
        """What it was told, oldest first, without what it knew of an operation already."""
        with self._guard:
            return [told.word for told in self._news]

    def _hear(self, told: Told) -> Told:
        with self._guard:
            of_this = [one for one in self._news if one.operation_id == told.operation_id]
            is_news = not of_this or of_this[-1].word != told.word
            if is_news:
                self._news.append(told)
        if is_news:
            self._on_told(told)
        return told

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Told:
        request = urllib.request.Request(  # noqa: S310 (the stack's own address)
            f"{self._url}/api/v1/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self._api_key}",
                "Content-Type": "application/json",
            },
            method=method,
        )
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
                return _answer(json.load(answer))
        except urllib.error.HTTPError as error:
            with error:
                return _problem(error)
        except (OSError, http.client.HTTPException, ValueError):
            return Told(word=NO_ANSWER)


def _answer(body: Mapping[str, Any]) -> Told:
    return Told(
        word=str(body["status"]),
        operation_id=str(body["operation_id"]),
        provider_object_id=body["provider_object_id"] or "",
        retry_after_s=float(body["retry_after_s"] or 1),
    )


def _problem(error: urllib.error.HTTPError) -> Told:
    try:
        body = json.load(error)
    except ValueError:
        return Told(word=str(error.code))
    field = body.get("field")
    return Told(
        word=f"{error.code} {field}" if field else str(body.get("code", error.code)),
        operation_id=str(body.get("operation_id", "")),
        retry_after_s=float(error.headers.get("Retry-After") or 1),
    )
