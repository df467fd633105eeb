"""The promises, judged on what the provider counted by itself and on what the tables hold."""

from tests.simulation.checks import outcomes, records, sending
from tests.simulation.checks.judging import judge

__all__ = ["judge", "outcomes", "records", "sending"]
