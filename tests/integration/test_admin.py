"""Django's admin: it shows, and what cannot be asked of the database is refused in words."""

import pytest
from django.test import Client

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
    "model", ["account", "apikey", "attempt", "auditentry", "evidence", "operation", "payment"]
)
def test_every_list_can_be_opened(admin_client: Client, model: str) -> None:
    assert admin_client.get(f"/admin/operations/{model}/").status_code == 200


def test_nothing_of_the_engine_can_be_added_by_hand(admin_client: Client) -> None:
    assert admin_client.get("/admin/operations/operation/add/").status_code == 403
