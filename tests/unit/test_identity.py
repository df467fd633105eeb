"""Who an operation is."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.domain.identity import (
    RefundInput,
    group_id,
    idempotency_key,
    metadata,
    uuid7,
)

NOW = datetime(2026, 3, 1, 12, 0, 0, 123_000, tzinfo=UTC)
WISH = RefundInput(
    account="default",
    order_id="4417",
    reference="",
    amount=3_800,
    currency="usd",
    payment="ch_1",
)
MOMENTS = st.datetimes(
    min_value=datetime(1970, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(9999, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    timezones=st.just(UTC),
)


@given(now=MOMENTS)
def test_an_id_is_a_uuid_of_version_7_and_tells_its_millisecond(now: datetime) -> None:
    made = uuid7(now)
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    elapsed = now - datetime(1970, 1, 1, tzinfo=UTC)
    assert made.int >> 80 == elapsed // timedelta(milliseconds=1)


@given(now=MOMENTS, later=st.integers(1, 10_000_000))
def test_a_later_millisecond_sorts_later(now: datetime, later: int) -> None:
    try:
        then = now + timedelta(milliseconds=later)
    except OverflowError:
        return
    assert uuid7(now) < uuid7(then)


def test_two_ids_of_one_moment_differ() -> None:
    assert len({uuid7(NOW) for _ in range(1_000)}) == 1_000


def test_the_zone_of_the_clock_makes_no_difference() -> None:
    from zoneinfo import ZoneInfo

    elsewhere = NOW.astimezone(ZoneInfo("Asia/Kathmandu"))
    assert uuid7(NOW).int >> 80 == uuid7(elsewhere).int >> 80


def test_a_digest_stays_what_it_was() -> None:
    """Operations written by an older release are compared with this."""
    assert WISH.digest() == "5672dcc3262cd0f66ab71dfbf7c9568a802adf9adfd99b32a1f804101bd419a8"
    other = replace(WISH, order_id="Bestellung \u00e4\u4e2d", reference="line 1", currency="jpy")
    assert other.digest() == "b9e2354f5381f9b6db0821cff7c8b5689e5c78de6e906a114c022ab0dc8b90ac"


@pytest.mark.parametrize(
    "change",
    [
        {"account": "other"},
        {"order_id": "4418"},
        {"reference": "line 1"},
        {"amount": 3_801},
        {"currency": "eur"},
        {"customer_account": "somebody"},
    ],
)
def test_another_wish_has_another_digest(change: dict[str, str]) -> None:
    assert replace(WISH, **change).digest() != WISH.digest()  # type: ignore[arg-type]


def test_a_remark_and_another_name_of_the_payment_make_no_other_wish() -> None:
    assert replace(WISH, reason="damaged", payment="pi_1").digest() == WISH.digest()


def test_parts_do_not_run_into_each_other() -> None:
    one = replace(WISH, order_id="1", reference="23")
    two = replace(WISH, order_id="12", reference="3")
    assert one.digest() != two.digest()


def test_a_group_is_the_same_in_any_order_of_its_parts() -> None:
    parts = [WISH, replace(WISH, reference="line 1"), replace(WISH, payment="ch_2")]
    group = group_id(parts)
    assert group.version == 8
    assert group.variant == "specified in RFC 4122"
    assert group == group_id(parts[::-1])
    assert group != group_id(parts[:2])
    assert group != group_id([*parts[:2], replace(WISH, payment="ch_3")])


def test_a_part_of_a_group_is_another_wish_than_the_same_alone() -> None:
    assert replace(WISH, group=group_id([WISH])).digest() != WISH.digest()


def test_the_key_and_the_mark_name_the_operation() -> None:
    operation = UUID("0195511c-0000-7000-8000-000000000001")
    assert idempotency_key(operation) == "recon-0195511c-0000-7000-8000-000000000001"
    assert metadata(operation, "tests") == {
        "reconcile_operation_id": str(operation),
        "reconcile_environment": "tests",
    }
    assert all(len(name) <= 40 for name in metadata(operation, "tests"))
