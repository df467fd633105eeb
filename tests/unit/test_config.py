"""What the environment may say, and how a wrong value is refused."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from reconcile import config, databases
from reconcile.config_stripe import NO_PROVIDER


def read(**values: str) -> config.Config:
    return config.read(values, base_dir=Path("/nowhere"))


def test_nothing_set_gives_the_documented_defaults() -> None:
    got = read()
    assert got.environment == "local"
    assert (got.max_attempts_per_call, got.max_attempts_per_operation) == (3, 6)
    assert (got.connect_timeout_s, got.read_timeout_s) == (3, 10)
    assert (got.key_window_s, got.key_safety_margin_s) == (86_400, 900)
    assert got.lookup_schedule_s == (10, 60, 300, 900, 3_600, 21_600, 86_400)
    assert got.lease_s > got.connect_timeout_s + got.read_timeout_s
    assert got.data_dir == Path("/nowhere/var")


def test_notices_go_to_public_networks_unless_others_are_named() -> None:
    assert read().notices.allow_networks == ()
    got = read(
        RECONCILE_NOTICES_ALLOW_NETWORKS="10.20.0.0/16, ::1/128",
        RECONCILE_NOTICES_RETRY_SCHEDULE_S="1,2",
        RECONCILE_NOTICES_TIMEOUT_S="2.5",
    ).notices
    assert [str(network) for network in got.allow_networks] == ["10.20.0.0/16", "::1/128"]
    assert (got.retry_schedule_s, got.timeout_s) == ((1, 2), 2.5)


def test_an_empty_variable_counts_as_unset() -> None:
    assert read(RECONCILE_KEY_WINDOW_S="", STRIPE_API_KEY=" ") == read()


def test_without_a_stripe_key_nothing_can_reach_stripe() -> None:
    assert read().stripe_api_base == NO_PROVIDER
    assert read(STRIPE_API_KEY="sk_test_abc").stripe_api_base is None


def test_lists_are_read_in_order() -> None:
    got = read(
        STRIPE_WEBHOOK_SECRETS="whsec_a, whsec_b,",
        RECONCILE_SECOND_PERSON_ABOVE="usd:5000,jpy:0",
        RECONCILE_LOOKUP_SCHEDULE_S="1,2,3",
        RECONCILE_REQUEST_TIMEOUT_S="0.5,2",
    )
    assert got.stripe_webhook_secrets == ("whsec_a", "whsec_b")
    assert got.second_person_above == {"usd": 5_000, "jpy": 0}
    assert got.lookup_schedule_s == (1, 2, 3)
    assert (got.connect_timeout_s, got.read_timeout_s) == (0.5, 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RECONCILE_ENVIRONMENT", "two words"),
        ("RECONCILE_NOTICES_ALLOW_NETWORKS", "10.20.0.1/16"),
        ("RECONCILE_NOTICES_ALLOW_NETWORKS", "everywhere"),
        ("RECONCILE_NOTICES_RETRY_SCHEDULE_S", "0,5"),
        ("RECONCILE_NOTICES_RETRY_SCHEDULE_S", "soon"),
        ("RECONCILE_NOTICES_TIMEOUT_S", "0"),
        ("RECONCILE_NOTICES_GIVE_UP_AFTER_S", "-1"),
        ("RECONCILE_NOTICES_RETENTION_S", "1"),
        ("RECONCILE_MAX_ATTEMPTS_PER_CALL", "0"),
        ("RECONCILE_MAX_ATTEMPTS_PER_CALL", "3.5"),
        ("RECONCILE_MAX_ATTEMPTS_PER_CALL", "1_0"),
        ("RECONCILE_MAX_ATTEMPTS_PER_OPERATION", "2"),
        ("RECONCILE_CALL_DEADLINE_S", "nan"),
        ("RECONCILE_CALL_DEADLINE_S", "-1"),
        ("RECONCILE_REQUEST_TIMEOUT_S", "3"),
        ("RECONCILE_REQUEST_TIMEOUT_S", "3,10,20"),
        ("RECONCILE_BACKOFF_BASE_S", "soon"),
        ("RECONCILE_KEY_WINDOW_S", "86401"),
        ("RECONCILE_KEY_WINDOW_S", "٣"),
        ("RECONCILE_KEY_SAFETY_MARGIN_S", "86400"),
        ("RECONCILE_LEASE_S", "13"),
        ("RECONCILE_LOOKUP_SCHEDULE_S", "10,10"),
        ("RECONCILE_LOOKUP_SCHEDULE_S", "10,x"),
        ("RECONCILE_BULK_ALONE_ROWS", "many"),
        ("RECONCILE_BULK_ALONE_TIMES", "-1"),
        ("RECONCILE_SECOND_PERSON_ABOVE", "usd"),
        ("RECONCILE_SECOND_PERSON_ABOVE", "USD:1"),
        ("RECONCILE_SECOND_PERSON_ABOVE", "xyz:1"),
        ("RECONCILE_EXPOSURE_LIMITS", "account:xyz:5"),
        ("STRIPE_API_KEY", "pk_test_public"),
        ("STRIPE_API_BASE", "stripe.example"),
        ("STRIPE_API_BASE", "http://["),
        ("STRIPE_API_BASE", "http://127.0.0.1:99999"),
        ("RECONCILE_DATA_DIR", __file__),
        ("RECONCILE_DATA_DIR", f"{__file__}/folder"),
        ("RECONCILE_DATA_DIR", "/proc/nowhere"),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence_that_names_it(name: str, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"^{name} must [^\n]*\.$"):
        read(**{name: value})


def test_a_live_key_is_never_sent_in_the_clear_nor_shown() -> None:
    with pytest.raises(ImproperlyConfigured, match="STRIPE_API_BASE") as refused:
        read(STRIPE_API_KEY="sk_live_secret", STRIPE_API_BASE="http://127.0.0.1:1")
    assert "sk_live_secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["sqlite:///x", "mysql://h/n", "postgres://h", "postgres://h:x/n"])
def test_only_a_postgresql_address_is_taken(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^DATABASE_URL must name"):
        databases.default(url=url, data_dir=Path("/nowhere"))


def test_a_socket_folder_in_the_address_is_the_host() -> None:
    got = databases.default(
        url="postgresql://me@/name?host=%2Ftmp%2Fsockets&sslmode=disable", data_dir=Path("/nowhere")
    )
    assert (got["HOST"], got["NAME"], got["USER"]) == ("/tmp/sockets", "name", "me")
    assert got["OPTIONS"]["sslmode"] == "disable"
    assert "host" not in got["OPTIONS"]
