"""Addresses in the provider's own console are data of the contract, and fit the mode."""

from operations.domain.contract import Page
from operations.providers.registry import provider_for
from operations.providers.stripe import STRIPE_CONTRACT


def test_a_page_fits_live_and_test_mode() -> None:
    live = STRIPE_CONTRACT.page_of(Page.REFUND, "re_1", livemode=True)
    test = STRIPE_CONTRACT.page_of(Page.PAYMENT, "pi_1", livemode=False)

    assert live == "https://dashboard.stripe.com/refunds/re_1"
    assert test == "https://dashboard.stripe.com/test/payments/pi_1"


def test_an_id_that_could_lead_elsewhere_has_no_page() -> None:
    for odd in ("", "../x", "re_1?x=1", "re 1", "javascript:alert(1)", "re_\u202e"):
        assert STRIPE_CONTRACT.page_of(Page.REFUND, odd, livemode=True) == ""


def test_what_answers_at_another_address_has_no_console() -> None:
    given = {"api_key": "sk_test_1", "connect_timeout_s": 1.0, "read_timeout_s": 1.0}
    at_stripe = provider_for("stripe", api_base=None, **given).contract
    elsewhere = provider_for("stripe", api_base="http://127.0.0.1:9", **given).contract

    assert at_stripe.page_of(Page.REFUND, "re_1", livemode=True)
    assert elsewhere.page_of(Page.REFUND, "re_1", livemode=True) == ""
