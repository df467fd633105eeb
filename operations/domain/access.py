"""Who may do what, and at which accounts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Act(StrEnum):
    """What can be done in the console; each is a permission of the same name."""

    READ = "read"
    READ_RAW = "read_raw"
    EXPORT = "export"
    DECIDE = "decide"
    BULK = "bulk"
    APPROVE = "approve"
    ADMINISTER = "administer"
    KEYS = "keys"
    SUBSCRIPTIONS = "subscriptions"
    POLICIES = "policies"
    PEOPLE = "people"


class Role(StrEnum):
    """The names of the groups."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    APPROVER = "approver"
    ADMIN = "admin"


_READING = frozenset([Act.READ, Act.READ_RAW, Act.EXPORT])
_DECIDING = _READING | {Act.DECIDE, Act.BULK}
#: What the groups may do when they are made. An installation may change it.
ROLE_ACTS: Mapping[Role, frozenset[Act]] = {
    Role.VIEWER: _READING,
    Role.OPERATOR: _DECIDING,
    Role.APPROVER: _DECIDING | {Act.APPROVE},
    Role.ADMIN: frozenset(Act),
}
#: Whoever may do one of these needs a second factor.
_TRUSTED = frozenset(Act) - _DECIDING

#: The accounts by id that a list is narrowed to; None: all of them, also those still to come.
Accounts = frozenset[int] | None


@dataclass(frozen=True, kw_only=True)
class Rights:
    """What a person may do everywhere, and what at single accounts (by id) beyond that."""

    everywhere: frozenset[Act] = frozenset()
    at_account: Mapping[int, frozenset[Act]] = field(default_factory=dict)

    def accounts(self, act: Act) -> Accounts:
        """Where this may be done: None is everywhere, and an empty set nowhere."""
        if act in self.everywhere:
            return None
        return frozenset(pk for pk, acts in self.at_account.items() if act in acts)

    def at(self, account_id: int | None) -> frozenset[Act]:
        """What may be done with something of this account. None: it belongs to no account."""
        if account_id is None:
            return self.everywhere
        return self.everywhere | self.at_account.get(account_id, frozenset())

    @property
    def anywhere(self) -> frozenset[Act]:
        """What may be done at one account at least."""
        return self.everywhere.union(*self.at_account.values())

    @property
    def need_second_factor(self) -> bool:
        """Whether a password alone is too little for this person."""
        return bool(self.anywhere & _TRUSTED)


#: Of who may do everything.
ALL = Rights(everywhere=frozenset(Act))
NONE = Rights()


def rights_of(rows: Iterable[tuple[int | None, str]]) -> Rights:
    """From pairs of an account's id (None: everywhere) and the name of what may be done there.

    Names that are no act are of another version, and give nothing.
    """
    known = {str(act): act for act in Act}
    everywhere: set[Act] = set()
    at_account: dict[int, set[Act]] = {}
    for account_id, name in rows:
        if name not in known:
            continue
        if account_id is None:
            everywhere.add(known[name])
        else:
            at_account.setdefault(account_id, set()).add(known[name])
    return Rights(
        everywhere=frozenset(everywhere),
        at_account={pk: frozenset(acts) for pk, acts in at_account.items()},
    )


def within(accounts: Accounts, account_id: int | None) -> bool:
    """Whether something of this account belongs to a list that is narrowed so."""
    return accounts is None or account_id in accounts
