"""What is hashed is written in one way, byte for byte what `json` writes with sorted names."""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operations.domain.audit import ActorKind, canonical

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _texts | st.sampled_from(ActorKind),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)


def _by_json(fields: dict[str, Any]) -> bytes:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


@settings(max_examples=150, deadline=None, database=None)
@given(st.dictionaries(_texts, _values, max_size=5))
def test_anything_json_can_write_is_written_as_json_writes_it(fields: dict[str, Any]) -> None:
    assert canonical(fields) == _by_json(fields)


@pytest.mark.parametrize(
    "value",
    [
        *(1e16, 1e-7, 0.1, float("nan"), float("inf"), -0.0),
        *(2**53, 2**64, -(2**70), True, None, ActorKind.JOB),
        *("".join(map(chr, range(0x20))), "\x7f\x80\u2028", '"\\/', "ä中😀", ""),
        *({"ab": 1, "a": 2, "ä": 3, "😀": 4, "\uffff": 5}, {2: "two", 1: "one"}, (1, [2.5])),
    ],
)
def test_what_writers_of_json_differ_on_stays_as_it_is(value: object) -> None:
    assert canonical({"value": value}) == _by_json({"value": value})


def test_what_json_can_not_write_is_refused() -> None:
    with pytest.raises(TypeError):
        canonical({"id": UUID(int=1)})
    with pytest.raises(UnicodeEncodeError):
        canonical({"text": "\ud800"})
