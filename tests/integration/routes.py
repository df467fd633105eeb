"""Every address of the site, found by asking it."""

import re
import uuid
from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RegexPattern, RoutePattern

#: An id that nothing has, for each kind of part that an address can have.
_MADE_UP: dict[str, Any] = {
    "int": "1",
    "uuid": str(uuid.UUID(int=1)),
    "slug": "none",
    "str": "none",
    "path": "none/none",
}


def routes() -> Iterator[tuple[str, str, Any]]:
    """The name, a path and the view of each route."""
    yield from _below(get_resolver(), "", "/")


def _below(resolver: URLResolver, space: str, start: str) -> Iterator[tuple[str, str, Any]]:
    for entry in resolver.url_patterns:
        path = start + _path_of(entry.pattern)
        if isinstance(entry, URLResolver):
            inner = f"{space}{entry.namespace}:" if entry.namespace else space
            yield from _below(entry, inner, path)
        elif isinstance(entry, URLPattern):
            yield f"{space}{entry.name or ''}", path, entry.callback


def _path_of(pattern: Any) -> str:
    if isinstance(pattern, RoutePattern):
        text = str(pattern)
        for name, converter in pattern.converters.items():
            kind = type(converter).__name__.removesuffix("Converter").lower()
            made_up = _MADE_UP.get(kind, "none")
            for written in (f"<{kind}:{name}>", f"<{name}>"):
                text = text.replace(written, made_up)
        return text
    if isinstance(pattern, RegexPattern):
        return re.sub(r"\(\?P<\w+>[^()]*\)", "none", str(pattern)).strip("^$").replace("\\", "")
    return str(pattern)
