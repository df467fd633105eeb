"""Many callers of the API at the same moment, over HTTP, each with a connection of its own."""

from collections import Counter
from functools import partial

import pytest

from operations.models import Operation

from .agent import Agent, HttpAnswer
from .stage import PART, AtOnce, Stage

pytestmark = pytest.mark.django_db(transaction=True)


def told(answers: list[HttpAnswer]) -> Counter[str]:
    """How many were told what."""
    assert all(isinstance(answer, HttpAnswer) for answer in answers), answers
    return Counter(answer.body.get("code") or str(answer.body["status"]) for answer in answers)


@pytest.mark.parametrize("callers", [2, 20])
def test_one_of_many_callers_sends_and_the_others_are_told_to_come_back(
    served: Stage, agent: Agent, live_server: "object", callers: int
) -> None:
    payment = served.payment()
    served.control.fault("slow", when="after", seconds=60)
    ask = partial(agent.ask_over_http, str(live_server), payment)
    asking = AtOnce([ask] * callers)
    served.control.wait_in_flight(timeout_s=20)
    asking.wait_for(callers - 1)
    losers = asking.so_far()
    assert len(served.control.in_flight()) == served.sends(payment) == 1
    served.control.let_go()

    assert told(losers) == {"in_progress": callers - 1}
    for loser in losers:
        assert loser.status == 409
        assert loser.headers["Content-Type"] == "application/problem+json"
        assert 1 <= int(loser.headers["Retry-After"]) <= 60
        assert loser.body["operation_id"] == str(Operation.objects.get().pk)
    assert told(asking.results())["refunded"] == 1
    assert (served.refunds(payment), served.refunded(payment)) == (1, PART)
    assert (served.sends(payment), Operation.objects.count()) == (1, 1)

    again = ask()
    assert (again.status, again.body["status"]) == (200, "refunded")
    assert served.sends(payment) == 1


def test_two_orders_of_one_payment_never_pass_the_till_together(
    served: Stage, agent: Agent, live_server: "object"
) -> None:
    payment = served.payment()

    answers = AtOnce(
        [
            partial(
                agent.ask_over_http,
                str(live_server),
                payment,
                order_id=f"order-{number}",
                amount=6_000,
            )
            for number in range(4)
        ]
    ).results()

    assert told(answers) == {"refunded": 1, "invalid_input": 3}
    assert (served.refunds(payment), served.refunded(payment)) == (1, 6_000)
