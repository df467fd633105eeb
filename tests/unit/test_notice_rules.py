"""What is told, when it is tried again, when a receiver is given up, and how it is signed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from operations.domain import signing
from operations.domain.notices import (
    RETRY_SCHEDULE_S,
    AfterFailure,
    NoticePolicy,
    NoticeType,
    Reply,
    after_failure,
    types_of_change,
)
from operations.domain.statuses import SETTLED, Status

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def told(before: Status, after: Status, *, flagged: bool = False) -> list[str]:
    return [str(kind) for kind in types_of_change(before=before, after=after, flagged=flagged)]


def test_every_change_is_told_as_what_it_comes_to() -> None:
    expected = {
        Status.SUCCEEDED: ["refund.succeeded"],
        Status.FAILED: ["refund.failed"],
        Status.UNKNOWN: ["refund.unknown"],
    }
    for before in set(Status) - SETTLED:
        for after in set(Status) - {before}:
            assert told(before, after) == expected.get(after, []), (before, after)


def test_what_leaves_its_end_is_reopened() -> None:
    for before in SETTLED:
        for after in set(Status) - SETTLED:
            assert told(before, after) == ["refund.reopened"]


def test_a_flag_comes_after_the_change_that_raised_it() -> None:
    assert told(Status.SUCCEEDED, Status.FAILED, flagged=True) == [
        "refund.failed",
        "refund.flagged",
    ]
    assert told(Status.FAILED, Status.FAILED, flagged=True) == ["refund.flagged"]
    assert told(Status.FAILED, Status.FAILED) == []


def test_the_names_of_the_types_are_a_promise() -> None:
    assert sorted(NoticeType) == [
        "refund.failed",
        "refund.flagged",
        "refund.reopened",
        "refund.succeeded",
        "refund.unknown",
    ]


def failed(reply: Reply | None = None, **given: Any) -> AfterFailure:
    standard: dict[str, Any] = {
        "tries": 1,
        "failures": 1,
        "failing_since": NOW,
        "policy": NoticePolicy(),
        "now": NOW,
        "jitter": 0.0,
    }
    return after_failure(reply or Reply(http_status=500), **standard | given)


def wait_s(then: AfterFailure) -> float:
    assert then.next_try_at is not None
    return (then.next_try_at - NOW).total_seconds()


def test_pauses_grow_over_three_days() -> None:
    pauses = [wait_s(failed(tries=tries)) for tries in range(1, 10)]
    assert pauses == list(RETRY_SCHEDULE_S)
    assert sum(pauses) > 3 * 86_400
    assert failed(tries=10).next_try_at is None


def test_jitter_only_ever_delays() -> None:
    assert wait_s(failed(tries=2, jitter=1.0)) == 360


def test_a_receiver_may_ask_for_a_longer_pause_but_not_for_ever() -> None:
    assert wait_s(failed(Reply(http_status=503, retry_after_s=60))) == 60
    assert wait_s(failed(Reply(http_status=503, retry_after_s=10**9))) == 86_400
    rest = failed(Reply(http_status=429, retry_after_s=10**9)).resume_at
    assert rest == NOW + timedelta(hours=1)


def test_a_receiver_in_trouble_rests_longer_and_longer() -> None:
    rests = [failed(failures=failures).resume_at for failures in (1, 2, 3, 4, 5, 50)]
    seconds = [(rest - NOW).total_seconds() if rest else 0 for rest in rests]
    assert seconds == [0, 0, 2, 4, 8, 300]


def test_gone_disables_at_once_and_days_of_failure_do() -> None:
    assert failed(Reply(http_status=410)).disable
    assert not failed(failing_since=NOW - timedelta(days=2, hours=23)).disable
    assert failed(failing_since=NOW - timedelta(days=3)).disable


def test_what_disables_keeps_the_notice() -> None:
    then = failed(tries=10, failing_since=NOW - timedelta(days=3))
    assert then.disable
    assert then.next_try_at == NOW


@pytest.mark.parametrize(
    ("status", "taken"), [(200, True), (299, True), (199, False), (301, False)]
)
def test_only_a_2xx_is_taken(status: int, taken: bool) -> None:
    assert Reply(http_status=status).taken is taken
    assert not Reply(error="No answer came in time.").taken


def test_the_signature_is_the_one_that_other_libraries_make() -> None:
    """The example that the libraries of the specification test themselves with."""
    made = signing.headers(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1_614_265_330,
        body='{"test": 2432232314}',
    )
    assert made == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_two_secrets_make_two_signatures() -> None:
    secrets = [signing.secret_of(bytes([place]) * 32) for place in (1, 2)]
    made = signing.headers(secrets, message_id="msg_1", timestamp=1, body="{}")
    first, second = made["webhook-signature"].split(" ")
    assert first != second
    assert first == signing.signature(secrets[0], message_id="msg_1", timestamp=1, body="{}")
