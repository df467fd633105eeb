"""Every address and command that changes something says which entry it leaves, or why none.

The names are those that the services write; that each is written with its facts is asserted beside
the tests of that service.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from django.contrib import admin
from django.contrib.auth.models import User
from django.test import RequestFactory

import operations
from operations.console.deeds import DEED
from operations.console.wording import ACTION
from tests.integration.access.expectations import API, CONSOLE

SOURCES = Path(operations.__file__).parent
_SETTLED = ("closed_succeeded", "closed_failed", "proposed")

#: What leaves an entry, by the name or the text of the address.
AUDITED: dict[str, tuple[str, ...]] = {
    "save-view": ("view_saved",),
    "remove-view": ("view_removed",),
    "subscriptions": ("subscription_created",),
    "roll-secret": ("subscription_secret_rolled",),
    "disable-subscription": ("subscription_disabled",),
    "enable-subscription": ("subscription_enabled",),
    "send-again": ("notice_sent_again",),
    "backfill-start": ("backfill_started",),
    "backfill-go-on": ("backfill_resumed",),
    "bulk-begin": ("bulk_started", "bulk_proposed"),
    "bulk-approve": ("bulk_approved",),
    "bulk-reject": ("bulk_rejected",),
    "bulk-stop": ("bulk_stopped",),
    "report-upload": ("report_uploaded",),
    "report-apply": ("report_applied",),
    "bundle": ("bundle_made",),
    "claim": ("claimed",),
    "release": ("claim_released",),
    "take-over": ("claim_taken_over",),
    "clear-attention": ("attention_cleared",),
    "close": _SETTLED,
    "reopen": ("reopening_proposed",),
    "reissue": ("reissue_asked",),
    "add-note": ("noted",),
    "approve": ("closed_succeeded", "closed_failed", "reopened"),
    "reject": ("proposal_rejected",),
    "replay-all-events": ("events_replayed",),
    "replay-event": ("events_replayed",),
    "orphan-link": ("refund_linked",),
    "orphan-outside": ("made_outside",),
    "orphan-total": ("discrepancy_closed",),
    "orphan-event-link": ("event_linked",),
    "orphan-event-outside": ("event_made_outside",),
    "settings": ("settings_changed",),
    "account-pause": ("sending_paused",),
    "account-resume": ("sending_resumed",),
    "keys": ("api_key_created",),
    "key-revoke": ("api_key_revoked",),
    "policies": ("policy_set",),
    "people": ("person_added",),
    "person-change": (
        *("role_given", "role_taken", "person_disabled", "person_enabled", "second_factor_reset"),
    ),
    "admin:operations_account_add": ("account_added",),
    "api/v1/refunds": ("opened",),
    "api/v1/refund-groups": ("opened",),
    "api/v1/subscriptions": ("subscription_created",),
    "api/v1/subscriptions/<subscription_id>/roll-secret": ("subscription_secret_rolled",),
    "api/v1/subscriptions/<subscription_id>/disable": ("subscription_disabled",),
    "api/v1/subscriptions/<subscription_id>/enable": ("subscription_enabled",),
    "api/v1/deliveries/<delivery_id>/send-again": ("notice_sent_again",),
}

#: What changes nothing that a trail is for.
NOT_AUDITED = {
    "bulk-preview": "a preview changes nothing and is forgotten",
    "orphans-choose": "a preview changes nothing and is forgotten",
    "bulk-again": "it only makes a preview",
    "heartbeat": "it says that a page is open; a claim that it prolongs was written down",
    "look-up": "what was found is evidence that names who looked; a change is audited",
}

#: Commands that change something.
COMMANDS = {
    "audit_bundle": ("bundle_made",),
    "backfill": ("backfill_started", "backfill_resumed"),
    "create_api_key": ("api_key_created",),
    "import_report": ("report_uploaded", "report_applied"),
    "pause_sending": ("sending_paused", "sending_resumed"),
    "seal_audit": ("audit_sealed",),
}
#: Commands that read, or run other parts.
OTHER_COMMANDS = {
    *("demo", "migrate", "run_local", "show_budget", "show_decisions", "show_transitions"),
    *("sum_up", "verify_audit", "verify_bundle"),
}
#: Reading that is written down.
READS = {
    "event-raw": "raw_read",
    "report-results": "exported",
    "bulk-results": "exported",
    "audit-export": "exported",
}
#: What is written down of what people sign in with.
SIGNING_IN = (
    *("signed_in", "signed_out", "sign_in_failed", "password_changed"),
    *("second_factor_added", "second_factor_removed", "second_factor_renewed"),
)
#: What jobs write down; all that they do to an operation is settled and audited there.
JOBS = ("events_removed", "audit_sealed")


def _written() -> set[str]:
    """All texts in the code that writes entries, which is not the code that has words for them."""
    writing = [
        *(SOURCES / "services").rglob("*.py"),
        *(SOURCES / "console" / "views").rglob("*.py"),
        SOURCES / "console" / "sign_in_trail.py",
        # A fact of an operation is the name of its entry.
        SOURCES / "domain" / "statuses.py",
    ]
    return {
        node.value
        for path in writing
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _changing() -> Iterator[str]:
    for name, expected in CONSOLE.items():
        if "POST" in expected.methods:
            yield name
    for route, methods in API.items():
        if set(methods) - {"GET", "HEAD"}:
            yield route
    for model, shown in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        request = RequestFactory().post("/")
        request.user = User(is_superuser=True)
        for may, what in (
            (shown.has_add_permission, "add"),
            (shown.has_change_permission, "change"),
            (shown.has_delete_permission, "delete"),
        ):
            if may(request):
                yield f"{name}_{what}"


def test_every_address_that_changes_something_is_listed() -> None:
    listed = AUDITED.keys() | NOT_AUDITED.keys()
    assert sorted(set(_changing()) - listed) == []
    assert sorted(listed - set(_changing())) == []
    assert READS.keys() <= CONSOLE.keys()


def test_every_command_is_listed() -> None:
    commands = {path.stem for path in (SOURCES / "management" / "commands").glob("[!_]*.py")}
    assert sorted(commands ^ (COMMANDS.keys() | OTHER_COMMANDS)) == []


#: All that are named above.
ENTRIES = {
    *(action for actions in (*AUDITED.values(), *COMMANDS.values()) for action in actions),
    *READS.values(),
    *SIGNING_IN,
    *JOBS,
}


def test_every_entry_is_written_somewhere() -> None:
    assert sorted(ENTRIES - _written()) == []


def test_every_entry_has_words() -> None:
    assert sorted(ENTRIES - ACTION.keys() - DEED.keys()) == []
