"""Many closed at once: what was seen is what is done, each by its own rules, once."""

from dataclasses import replace

import pytest

from operations.domain.bulk import BulkAction, BulkLimits, Hindrance, Outlook
from operations.domain.closure import SecondPersonReason
from operations.domain.statuses import Status
from operations.models import (
    AuditEntry,
    BulkResult,
    BulkRun,
    BulkState,
    Evidence,
    Operation,
    Proposal,
)
from operations.models.audit import first_break
from operations.queries.bulk import rows_to_show
from operations.services.bulk import (
    PreviewStale,
    begin,
)
from operations.services.bulk_previewing import (
    BulkRefused,
    preview,
    retry,
)
from operations.services.bulk_running import run_bulk
from operations.services.claiming import claim
from operations.services.looking_up import look_up

from .bulk_runs import NOTE, anything, audit_of, begun, results, saying, see, work
from .many import many_unknown, settle_by_webhook
from .stage import ALICE, BOB, PART, Stage
from .test_closing import looked_up, refund_of, unknown

pytestmark = pytest.mark.django_db(transaction=True)


def test_twelve_are_closed_each_with_its_own_entry_and_evidence(stage: Stage) -> None:
    ids = many_unknown(stage, 12)
    sent = stage.control.counts()
    run = begun(stage, see(stage, ids))

    work(stage.engine, run)

    assert (run.state, results(run)) == (BulkState.ENDED, {"closed": 12})
    entries = AuditEntry.objects.filter(action="closed_failed")
    assert entries.count() == 12 == entries.values("operation_id").distinct().count()
    for entry in entries:
        assert (entry.actor_name, entry.actor_address) == ("Alice", "127.0.0.1")
        assert entry.reason == NOTE
        assert (entry.before["status"], entry.after["status"]) == ("unknown", "failed")
        assert entry.after["bulk_run"] == run.pk
        evidence = Evidence.objects.get(pk=entry.evidence_id)
        assert evidence.facts["reference"] == "incident 29"
        assert evidence.facts["bulk_run"] == run.pk
        assert first_break(audit_of(evidence.operation_id)) is None
    assert stage.control.counts() == sent


def test_five_thousand_but_the_one_that_a_webhook_settled_meanwhile(served: Stage) -> None:
    stage = served
    ids = many_unknown(stage, 5_000)
    engine = replace(stage.engine, bulk_alone=BulkLimits(rows=10_000, times=10_000))
    run = preview(engine=engine, action=BulkAction.CLOSE_FAILED, ids=ids, actor=ALICE)
    begin(engine=engine, run_id=run.pk, saying=saying(run), actor=ALICE)
    sent = stage.control.counts()
    run_bulk(engine=engine, run_id=run.pk, is_over=lambda: True, rights_of=anything)
    settled = Operation.objects.get(pk=ids[4_321])
    assert settled.status == Status.UNKNOWN
    settle_by_webhook(stage, settled)

    work(engine, run)

    assert (run.state, results(run)) == (BulkState.ENDED, {"closed": 4_999, "skipped": 1})
    (skipped,) = run.lines.filter(result=BulkResult.SKIPPED)
    assert (skipped.operation_id, skipped.left_as) == (settled.pk, Status.SUCCEEDED)
    assert skipped.detail.startswith("Webhook evt_")
    settled.refresh_from_db()
    assert settled.status == Status.SUCCEEDED
    assert Operation.objects.filter(status=Status.FAILED).count() == 4_999
    closed = AuditEntry.objects.filter(action="closed_failed")
    assert closed.count() == 4_999 == closed.values("operation_id").distinct().count()
    assert not closed.filter(operation_id=settled.pk).exists()
    assert stage.control.counts() == sent


def test_what_changed_after_the_preview_is_refused_as_stale_and_nothing_is_changed(
    stage: Stage,
) -> None:
    ids = many_unknown(stage, 3)
    run = see(stage, ids)
    Operation.objects.get(pk=ids[1]).change(now=stage.clock(), attention=[])
    before = AuditEntry.objects.count()

    with pytest.raises(PreviewStale) as raised:
        begun(stage, run)

    assert [row.operation_id for row in raised.value.moved] == [ids[1]]
    run.refresh_from_db()
    assert (run.state, AuditEntry.objects.count()) == (BulkState.PREVIEWED, before)


def test_another_number_than_the_preview_has_is_refused(stage: Stage) -> None:
    run = see(stage, many_unknown(stage, 3))

    with pytest.raises(PreviewStale):
        begun(stage, run, count=2)

    assert BulkRun.objects.get().state == BulkState.PREVIEWED


def test_a_note_and_evidence_are_wanted(stage: Stage) -> None:
    run = see(stage, many_unknown(stage, 2))

    for field, said in (
        ("note", {"note": " "}),
        ("kind", {"kind": "absent_in_lookup"}),
        ("reference", {"reference": " "}),
    ):
        with pytest.raises(BulkRefused) as raised:
            begun(stage, run, **said)
        assert raised.value.field == field
    with pytest.raises(BulkRefused, match="Alice made this preview"):
        begin(engine=stage.engine, run_id=run.pk, saying=saying(run), actor=BOB)
    assert BulkRun.objects.get().state == BulkState.PREVIEWED


def test_the_same_form_twice_is_one_run(stage: Stage) -> None:
    run = see(stage, many_unknown(stage, 2))
    begun(stage, run)
    work(stage.engine, run)

    again = begun(stage, run, note="Another word.")

    assert (again.state, again.note) == (BulkState.ENDED, NOTE)
    assert AuditEntry.objects.filter(action="bulk_started").count() == 1
    assert AuditEntry.objects.filter(action="closed_failed").count() == 2


def test_a_preview_says_of_each_what_will_happen_and_why(stage: Stage) -> None:
    will, claimed, proposed = many_unknown(stage, 3)
    unlooked = unknown(stage, stage.payment(), made=False, order_id="4420")
    large = looked_up(
        stage, unknown(stage, stage.payment(amount=50_000), made=False, amount=10_001)
    )
    settled = stage.ask(stage.payment(), order_id="4419")
    seen_live = unknown(stage, stage.payment(), made=True, order_id="4421")
    claim(engine=stage.engine, operation_id=claimed, actor=BOB)
    begun(stage, see(stage, [unlooked.pk]))
    waits = Operation.objects.get(pk=proposed)
    begun_one = begun(stage, see(stage, [waits.pk]))
    stage.clock.advance(1_000)
    work(stage.engine, begun_one)

    run = see(stage, [will, claimed, proposed, unlooked.pk, large.pk, settled.pk, seen_live.pk])

    foreseen = {
        row.operation_id: (row.outlook, row.why) for row in rows_to_show(run, show="", after=0)
    }
    no_absence = SecondPersonReason.NO_FRESH_ABSENCE
    assert foreseen == {
        will: (Outlook.SECOND, [no_absence]),
        claimed: (Outlook.SECOND, [no_absence]),
        proposed: (Outlook.CANNOT, [Hindrance.PROPOSED]),
        unlooked.pk: (Outlook.SECOND, [no_absence]),
        large.pk: (Outlook.SECOND, [SecondPersonReason.AMOUNT, no_absence]),
        settled.pk: (Outlook.CANNOT, [Hindrance.SETTLED]),
        seen_live.pk: (Outlook.SECOND, [no_absence]),
    }
    assert run.sums["usd"] == {"second": 500 + 500 + PART + 10_001 + PART, "cannot": 500 + PART}


def test_what_wants_a_second_person_becomes_a_proposal_of_its_own(stage: Stage) -> None:
    ids = many_unknown(stage, 2)
    stage.clock.advance(1_000)
    run = begun(stage, see(stage, ids))

    work(stage.engine, run)

    assert results(run) == {"proposed": 2}
    assert set(Operation.objects.values_list("status", flat=True)) == {Status.UNKNOWN}
    for proposal in Proposal.objects.all():
        assert (proposal.proposed_by_name, proposal.note) == ("Alice", NOTE)
        entry = AuditEntry.objects.get(operation_id=proposal.operation_id, action="proposed")
        assert entry.after["bulk_run"] == run.pk


def test_what_was_seen_to_want_a_second_person_still_does_when_an_absence_became_fresh(
    stage: Stage,
) -> None:
    ids = many_unknown(stage, 3)
    stage.clock.advance(1_000)
    engine = replace(stage.engine, bulk_alone=BulkLimits(rows=1))
    run = preview(engine=engine, action=BulkAction.CLOSE_FAILED, ids=ids, actor=ALICE)
    assert (run.counts, run.reasons) == ({"second": 3}, [])
    # The same answer again: nothing has changed, but it is fresh now.
    for pk in ids:
        look_up(engine=engine, operation_id=pk, actor=ALICE)
    begin(engine=engine, run_id=run.pk, saying=saying(run), actor=ALICE)

    work(engine, run)

    assert (run.state, results(run)) == (BulkState.ENDED, {"proposed": 3})
    assert set(Operation.objects.values_list("status", flat=True)) == {Status.UNKNOWN}
    proposal = Proposal.objects.get(operation_id=ids[2])
    assert proposal.reasons == [SecondPersonReason.NO_FRESH_ABSENCE]


def test_what_somebody_works_on_is_left_to_them_also_when_they_came_later(stage: Stage) -> None:
    ids = many_unknown(stage, 3)
    claim(engine=stage.engine, operation_id=ids[0], actor=BOB)
    run = begun(stage, see(stage, ids))
    claim(engine=stage.engine, operation_id=ids[1], actor=BOB)

    work(stage.engine, run)

    assert results(run) == {"left": 1, "refused": 1, "closed": 1}
    assert run.lines.get(result="refused").detail == Hindrance.CLAIMED
    assert Operation.objects.get(pk=ids[1]).status == Status.UNKNOWN


def test_closing_as_succeeded_wants_the_refund_that_is_known_and_reads_it_live(
    stage: Stage,
) -> None:
    payment = stage.payment()
    stage.control.fault("pending")
    pending = stage.ask(payment)
    refund = refund_of(stage, payment)
    nothing = unknown(stage, stage.payment(), made=False, order_id="4418")
    run = begun(stage, see(stage, [pending.pk, nothing.pk], BulkAction.CLOSE_SUCCEEDED))

    work(stage.engine, run)

    assert results(run) == {"refused": 1, "left": 1}
    assert "pending at the provider" in run.lines.get(result="refused").detail
    stage.control.set_refund_status(refund, "succeeded")
    again = retry(engine=stage.engine, run_id=run.pk, actor=ALICE)
    assert (again.retry_of_id, again.rows) == (run.pk, 1)
    begun(stage, again)
    work(stage.engine, again)
    pending.refresh_from_db()
    assert results(again) == {"closed": 1}
    assert (pending.status, pending.provider_object_id) == (Status.SUCCEEDED, refund)
    assert stage.sends(payment) == 1
