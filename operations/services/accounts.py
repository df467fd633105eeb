"""Which account a caller or an event means."""

from django.db import transaction
from django.db.models import Q

from operations.domain.audit import Actor
from operations.models import Account, AuditEntry
from operations.services.engine import Engine

DEFAULT_ACCOUNT = "default"


class UnknownAccount(Exception):
    """No account of this name or provider id exists in the mode this installation runs in."""


@transaction.atomic
def add_account(*, engine: Engine, account: Account, reason: str, actor: Actor) -> Account:
    """Keep a new account, for good."""
    account.save(force_insert=True)
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action="account_added",
        now=engine.clock(),
        after={
            "account": account.name,
            "provider": account.provider,
            "provider_account": account.provider_account,
            "livemode": account.livemode,
        },
        reason=reason.strip(),
    )
    return account


def account_for(*, engine: Engine, name: str) -> Account:
    """The account by our name or by the provider's id; "" is the default one, made on first use.

    Raises UnknownAccount.
    """
    if name in ("", DEFAULT_ACCOUNT):
        return Account.objects.get_or_create(
            name=DEFAULT_ACCOUNT,
            livemode=engine.livemode,
            defaults={"provider": "stripe", "provider_account": ""},
        )[0]
    # The address of a webhook can name anything, and the database takes no NUL.
    if not name.isprintable():
        raise UnknownAccount(name)
    found = (
        Account.objects.filter(livemode=engine.livemode)
        .filter(Q(name=name) | Q(provider_account=name))
        .first()
    )
    if found is None:
        raise UnknownAccount(name)
    return found
