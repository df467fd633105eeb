"""Many people at one operation: one of them decides, and the others learn that somebody did."""

import os
import time

import pytest

from operations.models import AuditEntry, Proposal
from operations.models.proposal import ProposalState
from operations.queries.verifying import verify_chains

from .contention import PEOPLE, Contest
from .stage import Stage

#: `make contention` plays more of them.
ROUNDS = int(os.environ.get("CONTENTION_ROUNDS", "25"))


@pytest.mark.django_db(transaction=True)
def test_of_twenty_people_one_wins_each_round_and_the_trail_stays_whole(stage: Stage) -> None:
    began = time.monotonic()
    with Contest(stage) as contest:
        tally = contest.play(ROUNDS)
    took = time.monotonic() - began

    assert tally.rounds.total() == ROUNDS
    assert tally.late + tally.without_a_say == ROUNDS * (len(PEOPLE) - 1)
    walked = verify_chains()
    assert walked.broken is None
    assert walked.entries == AuditEntry.objects.count()
    waiting = Proposal.objects.filter(state=ProposalState.WAITING)
    assert waiting.count() == waiting.values("operation").distinct().count()
    print(
        f"\n{ROUNDS} rounds of {len(PEOPLE)} people in {took:.1f} s: {dict(tally.rounds)};"
        f" {len(tally.winners)} people won, {tally.late} were late,"
        f" {tally.without_a_say} had no say;"
        f" {walked.entries} entries in {walked.chains} chains, whole."
    )
