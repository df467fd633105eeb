"""What the database refuses of what people found to be made outside, whoever writes."""

from typing import Any

import pytest

from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db


def outside(rows: Rows, refund: int, **columns: Any) -> int:
    given: dict[str, Any] = {
        "refund_id": refund,
        "reason": "Goodwill.",
        "found_by": "1",
        "found_by_name": "Dana",
        "found_at": NOW,
    }
    return int(rows.insert("madeoutside", **given | columns))


def discrepancy(rows: Rows, payment: int, **columns: Any) -> int:
    given: dict[str, Any] = {
        "payment_id": payment,
        "provider_total": 1_200,
        "known_total": 0,
        "opened_at": NOW,
        "last_seen_at": NOW,
        "outcome": "",
        "closed_by": "",
        "closed_by_name": "",
        "reason": "",
    }
    return int(rows.insert("discrepancy", **given | columns))


def test_a_finding_says_who_and_why_once_and_stays() -> None:
    rows = Rows()
    with refused(rows, by="made_outside_no_truncate"):
        rows.text("TRUNCATE operations_madeoutside")
    refund, other = rows.refund(rows.account()), rows.refund(rows.account())
    found = outside(rows, refund)
    with refused(rows, by="operations_madeoutside_refund_id_key", sqlstate=UNIQUE):
        outside(rows, refund)
    with refused(rows, by="made_outside_says_who_and_why", sqlstate=CHECK):
        outside(rows, other, reason="")
    with refused(rows, by="made_outside_no_update"):
        rows.update("madeoutside", found, reason="Other.")
    with refused(rows, by="made_outside_no_delete"):
        rows.text("DELETE FROM operations_madeoutside")


def test_a_discrepancy_is_open_once_and_closed_whole() -> None:
    rows = Rows()
    with refused(rows, by="discrepancy_no_truncate"):
        rows.text("TRUNCATE operations_discrepancy")
    account = rows.account()
    payment, other = rows.payment(account), rows.payment(account)
    row = discrepancy(rows, payment)
    with refused(rows, by="discrepancy_one_open", sqlstate=UNIQUE):
        discrepancy(rows, payment)
    with refused(rows, by="discrepancy_is_more", sqlstate=CHECK):
        discrepancy(rows, other, known_total=1_200)
    with refused(rows, by="discrepancy_closing_is_whole", sqlstate=CHECK):
        rows.update("discrepancy", row, closed_at=NOW, outcome="outside")
    with refused(rows, by="discrepancy_frozen"):
        rows.update("discrepancy", row, payment_id=other)
    with refused(rows, by="discrepancy_no_delete"):
        rows.text("DELETE FROM operations_discrepancy")
    rows.update("discrepancy", row, closed_at=NOW, outcome="explained")
    with refused(rows, by="discrepancy_closed_once"):
        rows.update("discrepancy", row, last_seen_at=NOW)


def test_a_policy_says_who_and_why_and_stays() -> None:
    rows = Rows()
    given: dict[str, Any] = {
        "name": "close_by_absence",
        "enabled": True,
        "reason": "Agreed.",
        "set_by": "1",
        "set_by_name": "Ada",
        "set_at": NOW,
    }
    with refused(rows, by="policy_no_truncate"):
        rows.text("TRUNCATE operations_policy")
    policy = rows.insert("policy", **given)
    with refused(rows, by="policy_name_known", sqlstate=CHECK):
        rows.insert("policy", **given | {"name": "send_again"})
    with refused(rows, by="policy_says_who_and_why", sqlstate=CHECK):
        rows.insert("policy", **given | {"reason": ""})
    with refused(rows, by="policy_no_update"):
        rows.update("policy", policy, enabled=False)
    with refused(rows, by="policy_no_delete"):
        rows.text("DELETE FROM operations_policy")


def orphan_event(rows: Rows, **columns: Any) -> int:
    given: dict[str, Any] = {
        "event_id": 1,
        "filed_at": NOW,
        "provider_event_id": "evt_1",
        "event_type": "charge.refunded",
        "event_account": "",
        "charge": "ch_1",
        "payment_intent": "",
        "happened_at": NOW,
        "seen_at": NOW,
        "reason": "",
        "found_by": "",
        "found_by_name": "",
    }
    return int(rows.insert("orphanevent", **given | columns))


def test_an_event_without_a_match_is_kept_once_and_answered_once() -> None:
    rows = Rows()
    with refused(rows, by="orphan_event_no_truncate"):
        rows.text("TRUNCATE operations_orphanevent")
    event = orphan_event(rows)
    with refused(rows, by="orphan_event_once", sqlstate=UNIQUE):
        orphan_event(rows)
    with refused(rows, by="orphan_event_answer_is_whole", sqlstate=CHECK):
        orphan_event(rows, provider_event_id="evt_2", found_at=NOW, found_by="1")
    with refused(rows, by="orphan_event_frozen"):
        rows.update("orphanevent", event, charge="ch_2")
    answer: dict[str, Any] = {"found_at": NOW, "found_by": "1", "found_by_name": "Dana"}
    rows.update("orphanevent", event, reason="Goodwill.", **answer)
    with refused(rows, by="orphan_event_answered_once"):
        rows.update("orphanevent", event, reason="Other.")
    with refused(rows, by="orphan_event_no_delete"):
        rows.text("DELETE FROM operations_orphanevent")
