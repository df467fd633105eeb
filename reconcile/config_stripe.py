"""Reads where the provider is and the key it is asked with."""

import re
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from reconcile.environment import Environment

# Where an attempt goes when neither a key is set nor a sandbox runs: nothing listens on the discard
# port of this machine, so that the connection is refused and nothing can be sent by mistake.
NO_PROVIDER = "http://127.0.0.1:9"


def read_api_key(env: Environment) -> str:
    """Read the key; what is wrong with it is said without showing it."""
    key = env.text("STRIPE_API_KEY")
    if key and not re.fullmatch(r"(sk|rk)_[A-Za-z0-9_]+", key):
        raise ImproperlyConfigured(
            "STRIPE_API_KEY must be a secret or restricted key, which starts with sk_ or rk_."
        )
    return key


def read_api_base(env: Environment, *, api_key: str) -> str | None:
    """An address without its last slash; None: the provider's own."""
    name = "STRIPE_API_BASE"
    base = env.text(name)
    if not base:
        return None if api_key else NO_PROVIDER
    wrong = ImproperlyConfigured(f'{name} must be an http or https address, not "{base}".')
    try:
        address = urlsplit(base)
        reachable = bool(address.hostname) and address.port != 0
    except ValueError:
        raise wrong from None
    if address.scheme not in ("http", "https") or not reachable or address.query:
        raise wrong
    if address.scheme == "http" and "_live_" in api_key:
        raise ImproperlyConfigured(f'{name} must be https with a live key, not "{base}".')
    return base.rstrip("/")
