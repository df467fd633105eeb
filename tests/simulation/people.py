"""People at the console: careful ones, hasty ones, and ones whose page is out of date."""

from collections.abc import Callable

from operations.domain.audit import Actor, ActorKind
from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.domain.statuses import Attention
from operations.models import Account, Operation, Proposal
from operations.models.proposal import ProposalState
from operations.services.clearing import clear_attention
from operations.services.closing import approve, close, reject
from operations.services.pausing import PauseRefused, pause_sending, resume_sending
from operations.services.weighing import ClosingRefused, Decision, StaleView
from tests.simulation.jobs import Jobs
from tests.simulation.world import World

_ANN = Actor(kind=ActorKind.PERSON, id="ann", name="Ann")
_BEN = Actor(kind=ActorKind.PERSON, id="ben", name="Ben")
_REFUSED = (ClosingRefused, StaleView)


class People:
    """`hasty` people close without looking; what they get wrong has to become visible."""

    def __init__(self, world: World, jobs: Jobs) -> None:
        self.world = world
        self.jobs = jobs

    def decide(self) -> None:
        """Somebody opens the queue, reads one row, and acts on it, perhaps too late."""
        rows = list(
            Operation.objects.exclude(status="open", attention=[])
            .exclude(status__in=("succeeded", "failed"), attention=[])
            .order_by("created_at", "id")
        )
        if not rows:
            return
        operation = self.world.rng.choice(rows)
        if self.world.rng.random() < 0.3:
            self.world.clock.advance(self.world.rng.choice((5.0, 90.0, 1_500.0)))
            self.world.others(self.world.act)
        choices: list[Callable[[Operation], None]] = [self._look_and_close, self._close_as_seen]
        if operation.attention:
            choices += [self._clear, self._clear]
        if operation.proposals.filter(state=ProposalState.WAITING).exists():
            choices = [self._second_person]
        self.world.rng.choice(choices)(operation)

    def pause_or_resume(self) -> None:
        """Somebody stops all sending, or lets it go on."""
        account = Account.objects.first()
        if account is None:
            return
        change = pause_sending if account.paused_at is None else resume_sending
        self.world.run(
            change.__name__,
            lambda: change(engine=self.world.engine, account=account, reason="So.", actor=_BEN),
            expected=(PauseRefused,),
        )

    def resume(self) -> None:
        """Nobody leaves an account paused for good."""
        if Account.objects.filter(paused_at__isnull=False).exists():
            self.pause_or_resume()

    def _look_and_close(self, operation: Operation) -> None:
        """Look up, wait for the list to be certain, and close on what was not found."""
        self.world.clock.advance(self.world.rng.choice((0.0, 70.0)))
        self.jobs.look_up(operation.pk)
        revision = Operation.objects.values_list("revision", flat=True).get(pk=operation.pk)
        self._close(operation, ClosingOutcome.FAILED, EvidenceKind.DASHBOARD, "case 7", revision)

    def _close_as_seen(self, operation: Operation) -> None:
        """Close with what the dashboard shows, or hastily with the wrong refund or none."""
        shown = list(self.world.provider.made.values())
        ours = [made for made in shown if made in self.world.provider.refunds_of(str(operation.pk))]
        pick = ours or shown
        if pick and self.world.rng.random() < 0.7:
            self._close(
                operation,
                ClosingOutcome.SUCCEEDED,
                EvidenceKind.PROVIDER_REFUND,
                self.world.rng.choice(pick).refund.id,
                operation.revision,
            )
            return
        self._close(
            operation, ClosingOutcome.FAILED, EvidenceKind.DASHBOARD, "case 7", operation.revision
        )

    def _close(
        self,
        operation: Operation,
        outcome: ClosingOutcome,
        kind: EvidenceKind,
        reference: str,
        revision: int,
    ) -> None:
        decision = Decision(
            outcome=outcome,
            evidence_kind=kind,
            evidence_reference=reference,
            note="Seen in the dashboard.",
            revision=revision,
        )
        proposed = self.world.run(
            f"close {operation.pk} {outcome} {reference}",
            lambda: close(
                engine=self.world.engine,
                operation_id=operation.pk,
                decision=decision,
                actor=_ANN,
            ),
            expected=_REFUSED,
        )
        if isinstance(proposed, Proposal) and self.world.rng.random() < 0.5:
            self._second_person(Operation.objects.get(pk=operation.pk))

    def _second_person(self, operation: Operation) -> None:
        proposal = (
            Proposal.objects.filter(operation=operation, state=ProposalState.WAITING)
            .order_by("id")
            .first()
        )
        if proposal is None:
            return
        actor = self.world.rng.choice((_ANN, _BEN, _BEN, _BEN))
        if self.world.rng.random() < 0.25:
            self.world.run(
                f"reject {operation.pk}",
                lambda: reject(
                    engine=self.world.engine, proposal_id=proposal.pk, note="No.", actor=actor
                ),
                expected=_REFUSED,
            )
            return
        self.world.run(
            f"approve {operation.pk}",
            lambda: approve(
                engine=self.world.engine,
                proposal_id=proposal.pk,
                revision=operation.revision,
                note="Checked.",
                actor=actor,
            ),
            expected=_REFUSED,
        )

    def _clear(self, operation: Operation) -> None:
        flag = Attention(self.world.rng.choice(sorted(operation.attention)))
        self.world.run(
            f"clear {flag} of {operation.pk}",
            lambda: clear_attention(
                engine=self.world.engine,
                operation_id=operation.pk,
                attention=flag,
                reason="Mended.",
                revision=operation.revision,
                actor=_BEN,
            ),
            expected=_REFUSED,
        )
