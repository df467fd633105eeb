"""Planted faults: each breaks the product in one way that people really broke such products.

A simulation that stays green proves nothing unless it turns red for each of these.
"""

from tests.simulation.faults import identity, learning, reading, sending
from tests.simulation.faults.planting import PLANTED, Fault

__all__ = ["PLANTED", "Fault", "identity", "learning", "reading", "sending"]
