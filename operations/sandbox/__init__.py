"""A stand-in for Stripe over HTTP, with faults on demand. Standard library only.

It imports nothing of the product, and the product imports nothing of it: both speak HTTP.
"""

from .client import ControlRefusedError, SandboxControl
from .promises import CONTRACTS, NoSuchContractError
from .running import Sandbox

__all__ = [
    "CONTRACTS",
    "ControlRefusedError",
    "NoSuchContractError",
    "Sandbox",
    "SandboxControl",
]
