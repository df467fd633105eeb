"""Who loses the right in mid-run, and whom operations are left to."""

import pytest
from django.contrib.auth.models import User

from operations.domain.access import Act, Rights
from operations.domain.bulk import BulkAction
from operations.domain.sentences import from_kept
from operations.models import Account, Claim
from operations.services import bulk_running
from operations.services.bulk_previewing import BulkRefused
from operations.services.bulk_running import run_bulk

from .bulk_runs import audit_of, begun, results, see, work
from .many import many_unknown
from .stage import ALICE, Stage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("action", [BulkAction.CLOSE_FAILED, BulkAction.LOOK_UP])
def test_who_loses_the_right_in_mid_run_does_nothing_more(
    stage: Stage, action: BulkAction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_running, "CHUNK", 1)
    run = begun(stage, see(stage, many_unknown(stage, 3), action))
    account = Account.objects.get()
    asked: list[str] = []

    def rights_of(person: str) -> Rights:
        asked.append(person)
        acts = frozenset([Act.BULK]) if len(asked) == 1 else frozenset()
        return Rights(at_account={account.pk: acts})

    run_bulk(engine=stage.engine, run_id=run.pk, is_over=lambda: False, rights_of=rights_of)

    done = "closed" if action is BulkAction.CLOSE_FAILED else "looked_up"
    assert results(run) == {done: 1, "refused": 2}
    row = run.lines.get(place=3)
    assert row.detail == f"Alice may not do this any more at the account {account.name}."
    assert row.said is not None
    assert str(from_kept(row.said)) == row.detail
    assert set(asked) == {"alice"}


def test_many_are_left_to_somebody_who_may_decide_there(stage: Stage) -> None:
    ids = many_unknown(stage, 2)
    omar = User.objects.create_superuser("omar", first_name="Omar")
    User.objects.create_user("vera")
    run = see(stage, ids, BulkAction.ASSIGN)
    for nobody in ("", "alice", str(User.objects.get(username="vera").pk)):
        with pytest.raises(BulkRefused, match="Choose who"):
            begun(stage, run, assignee=nobody)

    work(stage.engine, begun(stage, run, assignee=str(omar.pk)))

    assert results(run) == {"assigned": 2}
    assert set(Claim.objects.values_list("holder_name", flat=True)) == {"Omar"}
    entry = audit_of(ids[0])[-1]
    assert (entry.action, entry.actor_name) == ("assigned", ALICE.name)
    assert entry.after["claimed_by"] == "Omar"


def test_nothing_is_left_to_who_lost_the_right_since(stage: Stage) -> None:
    run = see(stage, many_unknown(stage, 1), BulkAction.ASSIGN)
    omar = User.objects.create_superuser("omar", first_name="Omar")
    begun(stage, run, assignee=str(omar.pk))
    User.objects.update(is_active=False)

    work(stage.engine, run)

    assert results(run) == {"refused": 1}
    assert not Claim.objects.exists()
