"""Every address of the site, read from the site itself."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.urls import URLPattern, URLResolver, get_resolver

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


class Address(NamedTuple):
    """One pattern. `route` is its whole text, `arguments` what has to be filled in."""

    route: str
    name: str
    arguments: tuple[str, ...]

    @property
    def key(self) -> str:
        """What the table of expectations lists it under: its name or, without one, its text."""
        return self.name or self.route

    def path(self, given: dict[str, Any]) -> str:
        """With its arguments filled in."""
        path = "/" + self.route
        for argument in self.arguments:
            start = path.index("<")
            path = path[:start] + str(given[argument]) + path[path.index(">") + 1 :]
        return path


def every_address(
    patterns: Sequence[URLPattern | URLResolver] | None = None, before: str = "", space: str = ""
) -> Iterator[Address]:
    """Each pattern once, included ones with what they are included under."""
    found = get_resolver().url_patterns if patterns is None else patterns
    for pattern in found:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{space}{pattern.namespace}:" if pattern.namespace else space
            yield from every_address(pattern.url_patterns, route, inner)
        else:
            converters = pattern.pattern.converters
            yield Address(route, space + pattern.name if pattern.name else "", tuple(converters))
