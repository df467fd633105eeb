"""Reads how people sign in: a second factor, how long sessions last, and an identity provider."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from reconcile.environment import Environment

_OIDC = ("RECONCILE_OIDC_ISSUER", "RECONCILE_OIDC_CLIENT_ID", "RECONCILE_OIDC_CLIENT_SECRET")


@dataclass(frozen=True, kw_only=True)
class Oidc:
    """An identity provider that speaks OpenID Connect. `name` stands on the sign-in page."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str

    @property
    def app(self) -> dict[str, Any]:
        """The same, as allauth wants it."""
        return {
            "provider_id": "sso",
            "name": self.name,
            "client_id": self.client_id,
            "secret": self.client_secret,
            "settings": {"server_url": self.issuer},
        }


@dataclass(frozen=True, kw_only=True)
class SignInPolicy:
    """How people sign in. Times in seconds."""

    require_mfa: bool
    """Whether who is trusted with more than deciding needs a second factor."""
    reauthenticate_s: int
    """A decision above the limit wants a sign-in or a confirmation this young."""
    session_idle_s: int
    """A session ends when nothing was asked in it for so long."""
    session_age_s: int
    """A session ends so long after signing in, whatever is done in it."""
    oidc: Oidc | None


def read_sign_in(env: Environment) -> SignInPolicy:
    """Raises ImproperlyConfigured with one sentence."""
    # On this machine alone people try things out, and sign in as four others.
    local = env.switch("DJANGO_DEBUG") or env.switch("RECONCILE_INSECURE_LOCAL")
    asked = env.text("RECONCILE_REQUIRE_MFA")
    age_s = env.whole("RECONCILE_SESSION_AGE_S", 12 * 3_600, least=60, most=30 * 86_400)
    return SignInPolicy(
        require_mfa=env.switch("RECONCILE_REQUIRE_MFA") if asked else not local,
        reauthenticate_s=env.whole("RECONCILE_REAUTHENTICATE_S", 300, least=30, most=86_400),
        session_idle_s=env.whole("RECONCILE_SESSION_IDLE_S", 3_600, least=60, most=30 * 86_400),
        session_age_s=age_s,
        oidc=_oidc(env),
    )


def _oidc(env: Environment) -> Oidc | None:
    given = [env.text(name) for name in _OIDC]
    if not any(given):
        return None
    for name, value in zip(_OIDC, given, strict=True):
        if not value:
            raise ImproperlyConfigured(
                f"{name} must be set, as the others of {', '.join(_OIDC)} are."
            )
    issuer, client_id, client_secret = given
    parts = urlsplit(issuer)
    local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost")
    if (
        not parts.hostname
        or parts.query
        or parts.fragment
        or not (parts.scheme == "https" or local)
    ):
        raise ImproperlyConfigured(
            f'RECONCILE_OIDC_ISSUER must be an address that begins with https://, not "{issuer}".'
        )
    name = env.text("RECONCILE_OIDC_NAME", "single sign-on")
    if not re.fullmatch(r"[^<>\x00-\x1f]{1,60}", name):
        raise ImproperlyConfigured(
            f'RECONCILE_OIDC_NAME must be up to 60 characters that can be shown, not "{name}".'
        )
    return Oidc(
        issuer=issuer.rstrip("/"), client_id=client_id, client_secret=client_secret, name=name
    )
