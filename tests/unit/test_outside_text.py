"""Text from outside keeps its direction to itself, whatever characters it holds."""

import pytest

from operations.templatetags.showing import outside


@pytest.mark.parametrize("character", ["\u2066", "\u2067", "\u2068", "\u2069"])
def test_what_would_end_or_swallow_the_isolation_is_written_out(character: str) -> None:
    shown = outside(f"a{character}b")
    assert shown == f'<bdi dir="auto">a\\u{ord(character):04x}b</bdi>'


def test_markup_is_text() -> None:
    assert outside("<b>") == '<bdi dir="auto">&lt;b&gt;</bdi>'
