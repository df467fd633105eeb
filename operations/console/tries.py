"""How often somebody tries to sign in: counted so that a stranger can't lock a person out.

Wrong passwords count for a name at one address. All addresses together have a ceiling for a name
that a single one never reaches, and it does not hold where that person has signed in before.
"""

import hashlib

from allauth.core.internal.ratelimit import RateLimitUsage, consume, get_ip
from django.core.cache import cache
from django.http import HttpRequest

#: How long an address is known as a person's after they signed in from it, in seconds.
_KNOWN_S = 30 * 86_400
_APP = "allauth.account"


def count_try(request: HttpRequest, name: str) -> RateLimitUsage | None:
    """Count one try for this name, until it is taken back; None when there were too many."""
    pair = f"{_folded(name)} {get_ip(request)}"
    here = consume(request, app=_APP, action="login_failed", key=pair)
    # What is refused here does not count for the name.
    if here is None or _is_known(request, name):
        return here
    anywhere = consume(request, app=_APP, action="login_failed_name", key=_folded(name))
    if anywhere is None:
        return None
    return RateLimitUsage(usage=[*here.usage, *anywhere.usage])


def remember_address(request: HttpRequest, name: str) -> None:
    """Somebody gave the right password for this name from where the request comes."""
    cache.set(_known(request, name), True, _KNOWN_S)


def _is_known(request: HttpRequest, name: str) -> bool:
    return bool(cache.get(_known(request, name)))


def _known(request: HttpRequest, name: str) -> str:
    about = f"{_folded(name)} {get_ip(request)}"
    return f"known-address:{hashlib.sha256(about.encode()).hexdigest()}"


def _folded(name: str) -> str:
    return name.casefold()
