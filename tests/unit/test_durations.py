"""Percentiles from a histogram of durations."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from operations.domain.durations import LAST_BUCKET, bucket_of, lower_bound_s, percentile_s

Durations = st.lists(st.floats(1, 86_400 * 100), min_size=1, max_size=60)


@given(seconds=st.floats(1, 86_400 * 190))
def test_a_duration_lies_in_its_bucket(seconds: float) -> None:
    bucket = bucket_of(seconds)
    assert 0 <= bucket <= LAST_BUCKET
    assert lower_bound_s(bucket) <= seconds * 1.000001
    assert seconds < lower_bound_s(bucket + 1) * 1.000001


@given(durations=Durations, share=st.sampled_from([0.5, 0.95]))
def test_a_percentile_is_right_to_within_a_bucket(durations: list[float], share: float) -> None:
    exact = sorted(durations)[max(0, -(-int(share * 100) * len(durations) // 100) - 1)]

    found = percentile_s(Counter(bucket_of(seconds) for seconds in durations), share)

    assert found is not None
    assert exact / 1.2 <= found <= exact * 1.2


def test_nothing_has_no_percentile() -> None:
    assert percentile_s({}, 0.5) is None
    assert bucket_of(0) == bucket_of(-5) == 0
    assert bucket_of(10**9) == LAST_BUCKET
