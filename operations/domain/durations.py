"""A histogram of durations: buckets that grow by a quarter of a doubling, and its percentiles."""

import math
from collections.abc import Mapping

#: Buckets to a doubling: the bounds of one are 19 % apart.
PER_DOUBLING = 4
#: The last bucket holds all from 194 days on.
LAST_BUCKET = 96


def bucket_of(seconds: float) -> int:
    """The bucket of a duration. Everything up to a second is in the first one."""
    return min(LAST_BUCKET, max(0, math.floor(PER_DOUBLING * math.log2(max(seconds, 1)))))


def lower_bound_s(bucket: int) -> float:
    """Where a bucket begins, in seconds."""
    return float(2 ** (bucket / PER_DOUBLING))


def percentile_s(counts: Mapping[int, int], share: float) -> float | None:
    """The duration that a `share` (0 to 1) of all does not exceed; None when there is none.

    Right to within the bucket that holds it.
    """
    total = sum(counts.values())
    if not total:
        return None
    wanted, seen = share * total, 0
    for bucket in sorted(counts):
        here = counts[bucket]
        if here and seen + here >= wanted:
            inside = (wanted - seen) / here
            return lower_bound_s(bucket) * 2 ** (inside / PER_DOUBLING)
        seen += here
    return lower_bound_s(max(counts) + 1)
