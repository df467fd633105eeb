"""How many calls one wish can become when every layer retries on its own."""

from dataclasses import dataclass

from operations.domain.budgets import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """How often each layer above us tries. Each multiplies what is below it."""

    agent: int = 3
    workflow: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase:
    """Sends to the provider for one wish: without a memory, and with this product's caps.

    `seconds_per_call`: the longest that one call to us takes, sends and pauses included.
    """

    calls_to_us: int
    multiplied: int
    capped: int
    seconds_per_call: float


def worst_case(layers: Layers, budget: Budget) -> WorstCase:
    """Every layer fails every time; ours has a budget per operation that all calls share."""
    calls = layers.agent * layers.workflow
    multiplied = calls * budget.attempts_per_call
    return WorstCase(
        calls_to_us=calls,
        multiplied=multiplied,
        capped=min(multiplied, budget.attempts_per_operation),
        seconds_per_call=budget.call_deadline_s,
    )
