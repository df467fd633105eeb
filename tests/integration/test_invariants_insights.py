"""What the database refuses of counts and of people's settings, whoever writes."""

from typing import Any

import pytest

from .console.scenes import person
from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db


def hour_count(rows: Rows, account: int, **columns: Any) -> int:
    given: dict[str, Any] = {
        "hour": NOW.replace(minute=0, second=0, microsecond=0),
        "account_id": account,
        "reason": "",
        "measure": "sends",
        "bucket": 0,
        "count": 1,
    }
    return int(rows.insert("hourcount", **given | columns))


def test_a_count_is_there_once_known_and_above_nothing() -> None:
    rows = Rows()
    account = rows.account()
    hour_count(rows, account)
    with refused(rows, by="hour_count_once", sqlstate=UNIQUE):
        hour_count(rows, account, count=2)
    with refused(rows, by="hour_count_measure_known", sqlstate=CHECK):
        hour_count(rows, account, measure="guessed")
    with refused(rows, by="hour_count_positive", sqlstate=CHECK):
        hour_count(rows, account, bucket=1, count=0)


def test_how_far_the_counts_are_is_one_row() -> None:
    rows = Rows()
    with refused(rows, by="summing_state_is_one_row", sqlstate=CHECK):
        rows.insert("summingstate", id=2, audit_entry=0, evidence=0)


def test_settings_are_ones_that_there_are() -> None:
    rows = Rows()
    user = person("viewer")
    given: dict[str, Any] = {"time_zone": "", "language": "", "theme": "", "dense": False}
    given |= {"user_id": user.pk, "shortcuts": True}
    with refused(rows, by="user_settings_theme_known", sqlstate=CHECK):
        rows.insert("usersettings", key="user_id", **given | {"theme": "sepia"})
    with refused(rows, by="user_settings_language_known", sqlstate=CHECK):
        rows.insert("usersettings", key="user_id", **given | {"language": "xx"})
