"""The table of decisions under every contract there is, for the documentation."""

from operations.domain.decision_table import decision_table
from operations.providers.contracts import SPOKEN_TO_LIKE_STRIPE
from operations.services.engine import Engine


def decisions_as_markdown(*, engine: Engine) -> str:
    """What is known, the next step, and what to avoid; decided by the rules, not written down."""
    return decision_table(
        contracts=SPOKEN_TO_LIKE_STRIPE, budget=engine.budget, policy=engine.key_window
    )
