"""How people sign in, as the environment says it."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from reconcile.config_sign_in import SignInPolicy, read_sign_in
from reconcile.environment import Environment

OIDC = {
    "RECONCILE_OIDC_ISSUER": "https://id.example/realm/",
    "RECONCILE_OIDC_CLIENT_ID": "reconcile",
    "RECONCILE_OIDC_CLIENT_SECRET": "do-not-show",
}


def read(**values: str) -> SignInPolicy:
    return read_sign_in(Environment(values))


def test_a_second_factor_is_required_but_on_this_machine_alone() -> None:
    assert read().require_mfa
    assert not read(RECONCILE_INSECURE_LOCAL="1").require_mfa
    assert not read(DJANGO_DEBUG="1").require_mfa
    assert read(DJANGO_DEBUG="1", RECONCILE_REQUIRE_MFA="1").require_mfa
    assert not read(RECONCILE_REQUIRE_MFA="0").require_mfa


def test_an_identity_provider_is_named_whole_and_its_secret_not_shown() -> None:
    assert read().oidc is None
    policy = read(**OIDC, RECONCILE_OIDC_NAME="Acme")
    assert policy.oidc is not None
    assert (policy.oidc.issuer, policy.oidc.name) == ("https://id.example/realm", "Acme")
    assert "do-not-show" not in repr(policy)


@pytest.mark.parametrize("missing", sorted(OIDC))
def test_a_part_of_it_that_is_missing_is_named(missing: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{missing} must"):
        read(**{name: value for name, value in OIDC.items() if name != missing})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RECONCILE_REQUIRE_MFA", "perhaps"),
        ("RECONCILE_REAUTHENTICATE_S", "5"),
        ("RECONCILE_SESSION_IDLE_S", "soon"),
        ("RECONCILE_SESSION_AGE_S", "0"),
        ("RECONCILE_OIDC_ISSUER", "http://id.example"),
        ("RECONCILE_OIDC_ISSUER", "id.example"),
        ("RECONCILE_OIDC_NAME", "<b>"),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence_that_names_it(name: str, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{name} must"):
        read(**(OIDC | {name: value}))
