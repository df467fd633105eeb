"""Payment providers: what one must offer, and the adapters that offer it."""

from operations.providers.base import (
    PaymentNotFound,
    Provider,
    ReadFailed,
    ReadRefused,
    RefundNotFound,
)
from operations.providers.registry import provider_for

__all__ = [
    "PaymentNotFound",
    "Provider",
    "ReadFailed",
    "ReadRefused",
    "RefundNotFound",
    "provider_for",
]
