"""Twenty people who decide at the same moment on what they all see, round after round.

A few operations are shared. In each round every person acts on one of them, as it stands and as
their page showed it; the acts of a round exclude each other.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count, cycle
from typing import Any

from django.db import connection

from operations.domain.audit import Actor, ActorKind
from operations.domain.closure import ReopenGround
from operations.domain.statuses import Status
from operations.models import AuditEntry, Claim, Operation, Proposal
from operations.models.proposal import ProposalState
from operations.services.claiming import claim, release, take_over
from operations.services.closing import approve, close, reject
from operations.services.noting import add_note
from operations.services.reopening import Taking, approve_reopening, propose_reopening
from operations.services.weighing import Overtaken, StaleView

from .stage import Stage
from .test_closing import failed, refund_of, succeeded, unknown

PEOPLE = [
    Actor(kind=ActorKind.PERSON, id=str(number), name=f"Person {number}", address="127.0.0.1")
    for number in range(20)
]
#: What a person gets who was not the first; the console answers both with 409.
LATE = (StaleView, Overtaken)
OWN_PROPOSAL = "You proposed this; another person has to decide."

#: Said by who has nothing to do with a round.
NO_PART = object()

Act = Callable[[Actor, int], Any]


@dataclass
class Tally:
    """What happened in all rounds."""

    rounds: Counter[str] = field(default_factory=Counter)
    winners: Counter[str] = field(default_factory=Counter)
    late: int = 0
    without_a_say: int = 0


class Contest:
    """The shared operations, and twenty people with a connection each."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.engine = stage.in_real_time()
        self.tally = Tally()
        self._orders = count()
        self._barrier = threading.Barrier(len(PEOPLE))
        self._pool = ThreadPoolExecutor(len(PEOPLE))

    def __enter__(self) -> "Contest":
        return self

    def __exit__(self, *_: object) -> None:
        for _end in self._pool.map(self._leave, PEOPLE):
            pass
        self._pool.shutdown()

    def play(self, rounds: int) -> Tally:
        """So many rounds, with what must hold after each."""
        for _number, (name, operation, act) in zip(range(rounds), self._rounds(), strict=False):
            self._round(name, operation, act)
        return self.tally

    def _rounds(self) -> Iterator[tuple[str, Operation, Act]]:
        """One round after another: whatever can be done with what is there."""
        shared = [self._unknown(made=False)[0] for _ in range(4)]
        for operation in cycle(shared):
            operation.refresh_from_db()
            yield from self._of_a_claim(operation)
            proposal = operation.proposals.filter(state=ProposalState.WAITING).first()
            if proposal is not None:
                yield self._of_an_answer(operation, proposal)
            elif operation.status == Status.FAILED:
                yield "reopen", operation, self._reopens(operation)
            else:
                yield "close", operation, self._closes_as_failed(operation)
            if self.tally.rounds["close"] % 3 == 0:
                yield self._of_two_outcomes()

    def _unknown(self, *, made: bool) -> tuple[Operation, str]:
        payment = self.stage.payment()
        order = f"order {next(self._orders)}"
        return unknown(self.stage, payment, made=made, order_id=order), payment

    def _of_a_claim(self, operation: Operation) -> Iterator[tuple[str, Operation, Act]]:
        """Somebody claims it, another takes it over, and it is given back before the deciding."""
        yield (
            "claim",
            operation,
            lambda who, _: claim(engine=self.engine, operation_id=operation.pk, actor=who),
        )
        holder = Claim.objects.get(pk=operation.pk).holder

        def takes(who: Actor, _: int) -> Any:
            if who.id == holder:
                return NO_PART  # Has it already.
            return take_over(
                engine=self.engine,
                operation_id=operation.pk,
                held_by=holder,
                reason="It is urgent.",
                actor=who,
            )

        yield "take over", operation, takes
        holder = Claim.objects.get(pk=operation.pk).holder
        release(engine=self.engine, operation_id=operation.pk, actor=PEOPLE[int(holder)])

    def _of_an_answer(self, operation: Operation, proposal: Proposal) -> tuple[str, Operation, Act]:
        """Half of them agree and half of them do not; who proposed it has no say."""
        agree = approve_reopening if proposal.reopens else approve
        asked: dict[str, Any] = {
            "engine": self.engine,
            "proposal_id": proposal.pk,
            "note": "Looked at it.",
        }

        def answers(who: Actor, place: int) -> Any:
            if place % 2:
                return agree(**asked, revision=operation.revision, actor=who)
            return reject(**asked, actor=who)

        return "answer", operation, answers

    def _closes_as_failed(self, operation: Operation) -> Act:
        return lambda who, place: close(
            engine=self.engine,
            operation_id=operation.pk,
            decision=failed(operation, note=f"Not there, says {place}."),
            actor=who,
        )

    def _reopens(self, operation: Operation) -> Act:
        taking = Taking(
            ground=ReopenGround.MISTAKE, note="It was a mistake.", revision=operation.revision
        )
        return lambda who, _: propose_reopening(
            engine=self.engine, operation_id=operation.pk, taking=taking, actor=who
        )

    def _of_two_outcomes(self) -> tuple[str, Operation, Act]:
        """Half of them saw the refund, the others did not."""
        operation, payment = self._unknown(made=True)
        refund = refund_of(self.stage, payment)

        def closes(who: Actor, place: int) -> Any:
            seen = succeeded(operation, refund) if place % 2 else failed(operation)
            return close(engine=self.engine, operation_id=operation.pk, decision=seen, actor=who)

        return "two outcomes", operation, closes

    def _round(self, name: str, operation: Operation, act: Act) -> None:
        """Let all of them act at once: one wins, the others are late, one entry is written."""
        entries = AuditEntry.objects.filter(operation_id=operation.pk)
        before = entries.count()
        number = self.tally.rounds.total()
        order = [(place + number) % len(PEOPLE) for place in range(len(PEOPLE))]
        results = list(self._pool.map(lambda place: self._act(act, place, order[place]), order))
        late = [result for _, result in results if isinstance(result, LATE)]
        silent = [one for one in results if one[1] is NO_PART or str(one[1]) == OWN_PROPOSAL]
        won = [
            who
            for who, result in results
            if not (result is NO_PART or isinstance(result, Exception))
        ]
        assert len(late) + len(silent) + len(won) == len(PEOPLE), (name, results)
        assert len(won) == 1, (name, won)
        written = list(entries.order_by("number")[before:])
        assert [entry.actor_name for entry in written] == [won[0].name], (name, written)
        if number % 5 == 0:
            self._note(operation, won[0])
        self.tally.rounds[name] += 1
        self.tally.winners[won[0].name] += 1
        self.tally.late += len(late)
        self.tally.without_a_say += len(silent)

    def _act(self, act: Act, who: int, place: int) -> tuple[Actor, Any]:
        self._barrier.wait(60)
        try:
            return PEOPLE[who], act(PEOPLE[who], place)
        except Exception as error:
            return PEOPLE[who], error

    def _note(self, operation: Operation, who: Actor) -> None:
        add_note(
            engine=self.engine,
            operation_id=operation.pk,
            text="Called the customer.",
            form_token=f"note-{self.tally.rounds.total()}",
            actor=who,
        )

    def _leave(self, _: Actor) -> None:
        self._barrier.wait(60)
        connection.close()
