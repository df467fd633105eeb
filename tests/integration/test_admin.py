"""Django's admin: it shows, and what cannot be asked of the database is refused in words."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from operations.models import Account, AuditEntry, BulkRun, Subscription

from .rows import Rows

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "address",
    [
        "/admin/operations/operation/?status=%00",
        "/admin/operations/eventhandling/?handling=%00",
        "/admin/operations/account/?%00=1",
    ],
)
def test_nul_in_a_filter_is_a_bad_request(admin_client: Client, address: str) -> None:
    assert admin_client.get(address).status_code == 400


@pytest.mark.parametrize(
    "model", ["account", "apikey", "attempt", "auditentry", "delivery", "evidence", "operation"]
)
def test_every_list_can_be_opened(admin_client: Client, model: str) -> None:
    assert admin_client.get(f"/admin/operations/{model}/").status_code == 200


@pytest.mark.parametrize(
    "address", ["mfa/authenticator", "account/emailaddress", "usersessions/usersession"]
)
def test_no_package_brings_a_page_that_changes_how_people_sign_in(
    admin_client: Client, address: str
) -> None:
    assert admin_client.get(f"/admin/{address}/").status_code == 404


def test_a_secret_of_a_subscription_is_not_shown(admin_client: Client) -> None:
    row = Subscription.objects.create(
        id=uuid4(),
        address="https://receiver.example/",
        created_at=datetime.now(UTC),
        created_by="Ada",
        secret="whsec_" + "A" * 44,
    )
    page = admin_client.get(f"/admin/operations/subscription/{row.pk}/change/")
    assert page.status_code == 200
    assert b"receiver.example" in page.content
    assert b"whsec_" not in page.content
    assert b"receiver.example" in admin_client.get("/admin/operations/subscription/").content


def test_the_actions_on_operations_lead_to_a_preview_in_the_console(admin_client: Client) -> None:
    operation = Rows().operation()
    chosen = {"action": "close_failed", "_selected_action": [str(operation)]}

    response = admin_client.post("/admin/operations/operation/", chosen)

    run = BulkRun.objects.get()
    assert response.headers["Location"] == f"/bulk/{run.pk}/"
    assert (run.state, run.rows, run.made_by_name) == ("previewed", 1, "admin")


def test_nobody_who_may_not_act_on_many_finds_such_actions(client: Client) -> None:
    operation = Rows().operation()
    reader = User.objects.create_user("reader", is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_operation"))
    reader.groups.add(Group.objects.get(name="viewer"))
    client.force_login(reader)
    chosen = {"action": "claim", "_selected_action": [str(operation)]}

    client.post("/admin/operations/operation/", chosen)

    assert b'value="close_failed"' not in client.get("/admin/operations/operation/").content
    assert not BulkRun.objects.exists()


def test_nothing_of_the_engine_can_be_added_by_hand(admin_client: Client) -> None:
    assert admin_client.get("/admin/operations/operation/add/").status_code == 403


def test_an_account_is_added_with_a_reason_and_an_entry_and_never_deleted(
    admin_client: Client,
) -> None:
    form = {"name": "shop-b", "provider": "stripe", "provider_account": "acct_9"}
    paused = {"pause_reason": "nobody wrote this down"}

    assert admin_client.post("/admin/operations/account/add/", form).status_code == 200
    assert not Account.objects.filter(name="shop-b").exists()
    form |= paused | {"reason": "A new shop"}
    response = admin_client.post("/admin/operations/account/add/", form)

    account = Account.objects.get(name="shop-b")
    assert (response.status_code, account.pause_reason) == (302, "")
    entry = AuditEntry.objects.get(action="account_added")
    assert (entry.actor_name, entry.actor_address) == ("admin", "127.0.0.1")
    assert (entry.after["account"], entry.after["livemode"]) == ("shop-b", False)
    assert entry.reason == "A new shop"
    address = f"/admin/operations/account/{account.pk}/delete/"
    assert admin_client.post(address, {"post": "yes"}).status_code == 403
    assert Account.objects.filter(pk=account.pk).exists()
