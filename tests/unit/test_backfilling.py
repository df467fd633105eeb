"""From when on events are fetched, and when that happens by itself."""

from datetime import UTC, datetime, timedelta

import pytest

from operations.domain.backfilling import Silence, SinceRefused, fetch_since, read_since

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
QUIET = timedelta(minutes=30)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("6h", ago(hours=6)),
        ("90m", ago(minutes=90)),
        ("3d", ago(days=3)),
        ("2w", ago(weeks=2)),
        ("45s", ago(seconds=45)),
        (" 2026-05-31T17:45 ", datetime(2026, 5, 31, 17, 45, tzinfo=UTC)),
        ("2026-05-31T17:45+02:00", datetime(2026, 5, 31, 15, 45, tzinfo=UTC)),
        ("2026-05-31", datetime(2026, 5, 31, tzinfo=UTC)),
    ],
)
def test_since_is_a_moment_or_how_long_ago(text: str, since: datetime) -> None:
    assert read_since(text, now=NOW) == since


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "neither a time"),
        ("yesterday", "neither a time"),
        ("6 hours", "neither a time"),
        ("-6h", "neither a time"),
        ("1.5h", "neither a time"),
        ("0h", "not in the past"),
        ("2026-06-02", "not in the past"),
        ("31d", "last 30 days"),
        ("999999w", "last 30 days"),
        ("2020-01-01", "last 30 days"),
    ],
)
def test_what_is_no_since_says_why(text: str, words: str) -> None:
    with pytest.raises(SinceRefused) as refused:
        read_since(text, now=NOW)

    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("silence", "since"),
    [
        # Nothing was sent since the last webhook.
        (Silence(heard_at=ago(days=2), sent_at=None), None),
        # Its webhook may still come.
        (Silence(heard_at=ago(hours=3), sent_at=ago(minutes=29)), None),
        (Silence(heard_at=ago(hours=3), sent_at=ago(minutes=30)), ago(hours=4)),
        (Silence(heard_at=None, sent_at=ago(hours=2)), ago(hours=3)),
        (Silence(heard_at=ago(days=90), sent_at=ago(days=80)), ago(days=30, minutes=-1)),
        # It was tried a moment ago, and stopped.
        (
            Silence(heard_at=ago(hours=3), sent_at=ago(hours=2), tried_at=ago(minutes=5)),
            None,
        ),
        (
            Silence(heard_at=ago(hours=3), sent_at=ago(hours=2), tried_at=ago(minutes=31)),
            ago(hours=4),
        ),
    ],
)
def test_a_send_that_no_webhook_follows_has_events_fetched(
    silence: Silence, since: datetime | None
) -> None:
    assert fetch_since(silence, quiet=QUIET, now=NOW) == since


def test_fetching_by_itself_can_be_switched_off() -> None:
    silence = Silence(heard_at=None, sent_at=ago(days=1))

    assert fetch_since(silence, quiet=timedelta(), now=NOW) is None
