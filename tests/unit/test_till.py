"""The till, against worlds in which we know what was really refunded."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from operations.domain.answers import PaymentFacts, RefundFacts
from operations.domain.till import Till, refunded_by_others


@dataclass(frozen=True)
class Part:
    """One refund of a payment: whose it is, and what the provider's list shows of it."""

    amount: int
    ours: bool
    made: bool
    listed: bool
    failed: bool
    by_mark: bool


parts = st.lists(
    st.builds(
        Part,
        amount=st.integers(1, 1_000),
        ours=st.booleans(),
        made=st.booleans(),
        listed=st.booleans(),
        failed=st.booleans(),
        by_mark=st.booleans(),
    ),
    max_size=8,
)


def others_counted(world: list[Part]) -> int:
    """What the rule counts as refunded by others in this world."""
    made = [(number, part) for number, part in enumerate(world) if part.made or not part.ours]
    ours = {number for number, part in enumerate(world) if part.ours and not part.failed}
    return refunded_by_others(
        PaymentFacts(
            charge="ch_1",
            payment_intent="",
            currency="usd",
            captured=10_000,
            refunded=sum(part.amount for _, part in made if not part.failed),
            livemode=False,
        ),
        [
            RefundFacts(
                id=f"re_{number}",
                status="failed" if part.failed else "succeeded",
                amount=part.amount,
                currency="usd",
            )
            for number, part in made
            if part.listed
        ],
        our_refund_ids=frozenset(
            f"re_{number}" for number, part in made if number in ours and not part.by_mark
        ),
        our_operation_ids=frozenset(str(number) for number in ours),
        ours=sum(world[number].amount for number in ours),
        marks={f"re_{number}": str(number) for number, part in made if part.by_mark},
    )


def really_by_others(world: list[Part]) -> int:
    return sum(part.amount for part in world if not part.ours and not part.failed)


@given(world=parts)
def test_what_the_list_shows_of_others_is_never_left_out(world: list[Part]) -> None:
    listed = [part for part in world if part.listed]

    assert others_counted(world) >= really_by_others(listed)


@given(world=parts)
def test_a_whole_list_is_counted_to_the_cent(world: list[Part]) -> None:
    whole = [
        Part(part.amount, part.ours, part.made, True, part.failed, part.by_mark) for part in world
    ]

    assert others_counted(whole) == really_by_others(whole)


@given(world=parts)
def test_when_all_of_ours_were_made_a_lagging_list_hides_nothing_of_others(
    world: list[Part],
) -> None:
    settled = [
        Part(part.amount, part.ours, True, part.listed, part.failed, part.by_mark) for part in world
    ]

    assert others_counted(settled) == really_by_others(settled)


@given(captured=st.integers(0, 10_000), ours=st.integers(0, 10_000), others=st.integers(0, 10_000))
def test_what_is_free_is_what_is_left_and_never_less_than_nothing(
    captured: int, ours: int, others: int
) -> None:
    free = Till(captured=captured, ours=ours, others=others).free

    assert free == max(0, captured - ours - others)
