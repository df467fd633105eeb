"""The account that a form names, if this person reaches it."""

from operations.console.permissions import ConsoleRequest
from operations.domain.access import within
from operations.models import Account
from operations.services.accounts import UnknownAccount, account_for
from operations.services.engine import default_engine


def account_within(request: ConsoleRequest, name: str) -> Account:
    """By name or by the provider's id. Raises UnknownAccount, also for one out of reach."""
    account = account_for(engine=default_engine(), name=name)
    if not within(request.accounts, account.pk):
        raise UnknownAccount(name)
    return account
