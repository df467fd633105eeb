"""What every address answers to whom. A new address is listed here, or the walk fails."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from operations.domain.access import Act

from .addresses import METHODS


class Reach(Enum):
    """Whose addresses these are."""

    OBJECT = auto()
    """Of one account: to people of another one it is not there."""
    NARROWED = auto()
    """A list, narrowed to the accounts of who looks."""
    SITE = auto()
    """Of the whole installation: nothing for people of single accounts."""


class Expected(NamedTuple):
    """Who may do it, and by which methods. POST may need another right than looking."""

    act: Act
    reach: Reach
    methods: tuple[str, ...]
    to_post: Act | None = None


_GET = ("GET",)
_SAFE = ("GET", "HEAD")
_POST = ("POST",)
_FORM = ("GET", "HEAD", "POST")
_OBJECT, _NARROWED, _SITE = Reach.OBJECT, Reach.NARROWED, Reach.SITE

#: The console, by name.
CONSOLE: Mapping[str, Expected] = {
    "queue": Expected(Act.READ, _NARROWED, _GET),
    "search": Expected(Act.READ, _NARROWED, _GET),
    "save-view": Expected(Act.READ, _NARROWED, _POST),
    "remove-view": Expected(Act.READ, _NARROWED, _POST),
    "subscriptions": Expected(Act.SUBSCRIPTIONS, _SITE, _FORM),
    "subscription": Expected(Act.SUBSCRIPTIONS, _SITE, _GET),
    "roll-secret": Expected(Act.SUBSCRIPTIONS, _SITE, _POST),
    "disable-subscription": Expected(Act.SUBSCRIPTIONS, _SITE, _POST),
    "enable-subscription": Expected(Act.SUBSCRIPTIONS, _SITE, _POST),
    "delivery": Expected(Act.SUBSCRIPTIONS, _SITE, _GET),
    "send-again": Expected(Act.SUBSCRIPTIONS, _SITE, _POST),
    "health-strip": Expected(Act.READ, _NARROWED, _GET),
    "keys-help": Expected(Act.READ, _NARROWED, _GET),
    "backfill": Expected(Act.READ, _NARROWED, _GET),
    "backfill-start": Expected(Act.DECIDE, _NARROWED, _POST),
    "backfill-go-on": Expected(Act.DECIDE, _OBJECT, _POST),
    "bulk": Expected(Act.READ, _NARROWED, _GET),
    "bulk-preview": Expected(Act.BULK, _NARROWED, _POST),
    "bulk-run": Expected(Act.READ, _OBJECT, _GET),
    "bulk-begin": Expected(Act.BULK, _OBJECT, _POST),
    "bulk-approve": Expected(Act.APPROVE, _OBJECT, _POST),
    "bulk-reject": Expected(Act.BULK, _OBJECT, _POST),
    "bulk-stop": Expected(Act.BULK, _OBJECT, _POST),
    "bulk-again": Expected(Act.BULK, _OBJECT, _POST),
    "bulk-results": Expected(Act.EXPORT, _OBJECT, _GET),
    "reports": Expected(Act.READ, _NARROWED, _GET),
    "report-upload": Expected(Act.DECIDE, _NARROWED, _POST),
    "report": Expected(Act.READ, _OBJECT, _GET),
    "report-apply": Expected(Act.DECIDE, _OBJECT, _POST),
    "report-results": Expected(Act.EXPORT, _OBJECT, _GET),
    "operation": Expected(Act.READ, _OBJECT, _GET),
    "operation-now": Expected(Act.READ, _OBJECT, _GET),
    "operation-timeline": Expected(Act.READ, _OBJECT, _GET),
    "operation-audit": Expected(Act.READ, _OBJECT, _GET),
    "bundle": Expected(Act.EXPORT, _OBJECT, _POST),
    "claim": Expected(Act.DECIDE, _OBJECT, _POST),
    "release": Expected(Act.DECIDE, _OBJECT, _POST),
    "take-over": Expected(Act.DECIDE, _OBJECT, _POST),
    "heartbeat": Expected(Act.READ, _OBJECT, _POST),
    "event-raw": Expected(Act.READ_RAW, _OBJECT, _GET),
    "look-up": Expected(Act.DECIDE, _OBJECT, _POST),
    "clear-attention": Expected(Act.DECIDE, _OBJECT, _POST),
    "close": Expected(Act.DECIDE, _OBJECT, _FORM),
    "close-reference": Expected(Act.DECIDE, _OBJECT, _GET),
    "receipt": Expected(Act.READ, _OBJECT, _GET),
    "receipt-of": Expected(Act.READ, _OBJECT, _GET),
    "reopen": Expected(Act.DECIDE, _OBJECT, _FORM),
    "reissue": Expected(Act.DECIDE, _OBJECT, _FORM),
    "add-note": Expected(Act.DECIDE, _OBJECT, _POST),
    "proposals": Expected(Act.READ, _NARROWED, _GET),
    "approve": Expected(Act.APPROVE, _OBJECT, _POST),
    "reject": Expected(Act.APPROVE, _OBJECT, _POST),
    "inbox": Expected(Act.READ, _SITE, _GET),
    "replay-all-events": Expected(Act.DECIDE, _SITE, _POST),
    "replay-event": Expected(Act.DECIDE, _SITE, _POST),
    "orphans-choose": Expected(Act.BULK, _NARROWED, _POST),
    "orphans": Expected(Act.READ, _NARROWED, _GET),
    "orphan": Expected(Act.READ, _OBJECT, _SAFE),
    "orphan-link": Expected(Act.DECIDE, _OBJECT, _POST),
    "orphan-outside": Expected(Act.DECIDE, _OBJECT, _POST),
    "orphan-total": Expected(Act.READ, _OBJECT, _FORM, to_post=Act.DECIDE),
    "insights": Expected(Act.READ, _NARROWED, _GET),
    "orphan-event": Expected(Act.READ, _OBJECT, _GET),
    "orphan-event-link": Expected(Act.DECIDE, _OBJECT, _POST),
    "orphan-event-outside": Expected(Act.DECIDE, _OBJECT, _POST),
    "money": Expected(Act.READ, _NARROWED, _GET),
    "settings": Expected(Act.READ, _NARROWED, _FORM),
    "accounts": Expected(Act.ADMINISTER, _NARROWED, _GET),
    "account": Expected(Act.ADMINISTER, _OBJECT, _GET),
    "account-pause": Expected(Act.ADMINISTER, _OBJECT, _POST),
    "account-resume": Expected(Act.ADMINISTER, _OBJECT, _POST),
    "keys": Expected(Act.KEYS, _SITE, _FORM),
    "key-revoke": Expected(Act.KEYS, _SITE, _POST),
    "audit-trail": Expected(Act.READ, _SITE, _GET),
    "audit-export": Expected(Act.EXPORT, _SITE, _GET),
    "policies": Expected(Act.POLICIES, _SITE, _FORM),
    "people": Expected(Act.PEOPLE, _SITE, _FORM),
    "person": Expected(Act.PEOPLE, _SITE, _GET),
    "person-change": Expected(Act.PEOPLE, _SITE, _POST),
}

#: Open to everybody, each of them for a reason that stands beside it.
PUBLIC: Mapping[str, tuple[str, ...]] = {
    # Probes and scrapers, which say nothing of single operations.
    "healthz": METHODS,
    "readyz": METHODS,
    "metrics": ("GET", "HEAD"),
    # Where one signs in and out.
    "login": ("GET", "HEAD", "POST"),
    "logout": ("POST",),
    "account_login": ("GET", "HEAD", "POST"),
    "account_logout": ("POST",),
    "account_inactive": ("GET", "HEAD"),
    # The second step, for who has passed the first.
    "mfa_authenticate": ("GET", "HEAD", "POST"),
    # To the identity provider and back; without one that is set there is nothing.
    "openid_connect_login": ("GET", "HEAD", "POST"),
    "openid_connect_callback": ("GET", "HEAD", "POST"),
    "socialaccount_login_cancelled": ("GET", "HEAD"),
    "socialaccount_login_error": ("GET", "HEAD"),
    # What is not offered: 404.
    "socialaccount_signup": (),
    "socialaccount_connections": (),
    "account_signup": (),
    "account_reset_password": (),
    "account_email": (),
    "admin:logout": METHODS,
    # Signed by the provider instead.
    "stripe-webhook": ("POST",),
    "stripe-webhook-account": ("POST",),
    # What the API is like; not what is in it.
    "api-v1:openapi-json": ("GET", "HEAD"),
    "api-v1:openapi-view": ("GET", "HEAD"),
    "api-v1:api-root": ("GET", "HEAD"),
}

#: What one signs in with: everybody's own, and nobody else's.
OWN = {
    "account_reauthenticate",
    "account_change_password",
    "account_set_password",
    "mfa_index",
    "mfa_reauthenticate",
    "mfa_activate_totp",
    "mfa_deactivate_totp",
    "mfa_view_recovery_codes",
    "mfa_generate_recovery_codes",
    "mfa_download_recovery_codes",
    "mfa_list_webauthn",
    "mfa_add_webauthn",
    "mfa_reauthenticate_webauthn",
    "mfa_remove_webauthn",
    "mfa_edit_webauthn",
    "usersessions_list",
}

#: The API, by the text of the address: the methods that want a key. All others are refused.
API: Mapping[str, tuple[str, ...]] = {
    "api/v1/refunds": ("POST",),
    "api/v1/refunds/<operation_id>": ("GET",),
    "api/v1/refund-groups": ("POST",),
    "api/v1/refund-groups/<group>": ("GET",),
    "api/v1/subscriptions": ("GET", "POST"),
    "api/v1/subscriptions/<subscription_id>": ("GET",),
    "api/v1/subscriptions/<subscription_id>/roll-secret": ("POST",),
    "api/v1/subscriptions/<subscription_id>/disable": ("POST",),
    "api/v1/subscriptions/<subscription_id>/enable": ("POST",),
    "api/v1/deliveries": ("GET",),
    "api/v1/deliveries/<delivery_id>": ("GET",),
    "api/v1/deliveries/<delivery_id>/send-again": ("POST",),
    "api/v1/<path:unknown>": (),
}

#: Django's admin is for its staff who read everywhere; nothing of it is anybody else's.
ADMIN = "admin/"
