"""Reading a body: JSON whose objects name each field once."""

import json
from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser


class NamedTwice(ValueError):
    """One object names this field more than once."""

    def __init__(self, field: str) -> None:
        self.field = field
        super().__init__(field)


class NamedOnceParser(Parser):
    """Refuses a field that is named twice: of two amounts nobody can say which one is meant."""

    def parse_body(self, request: HttpRequest) -> Any:
        """The parsed body. Raises ValueError, NamedTwice among them."""
        return json.loads(request.body, object_pairs_hook=_named_once)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise NamedTwice(next(name for name in fields if names.count(name) > 1))
    return fields
