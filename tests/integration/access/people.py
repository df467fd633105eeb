"""Who walks: a person of each role, people of single accounts, and people who have no business."""

from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from operations.domain.access import ROLE_ACTS, Act, Role
from operations.models import Account, Grant

#: By name: what they may do everywhere, and what at the account that everything belongs to.
ROLES = {str(role): (acts, acts) for role, acts in ROLE_ACTS.items()}
NOTHING = frozenset[Act]()
WALKERS = {
    "anonymous": (NOTHING, NOTHING),
    **ROLES,
    "here": (NOTHING, ROLE_ACTS[Role.OPERATOR]),
    "elsewhere": (NOTHING, NOTHING),
    "disabled": (NOTHING, NOTHING),
    "nobody": (NOTHING, NOTHING),
}


def make_walkers(here: Account, elsewhere: Account) -> dict[str, Client]:
    """A client for each, signed in but for the anonymous one. The disabled one was, before."""
    clients = {"anonymous": Client()}
    for name in WALKERS:
        if name == "anonymous":
            continue
        user = User.objects.create_user(username=f"walker-{name}", is_staff=True)
        if name in ROLES:
            user.groups.add(Group.objects.get(name=name))
        if name == "disabled":
            user.groups.add(Group.objects.get(name=Role.ADMIN))
        if name in ("here", "elsewhere"):
            grant(user, Role.OPERATOR, here if name == "here" else elsewhere)
        clients[name] = Client()
        clients[name].force_login(user)
        if name == "disabled":
            User.objects.filter(pk=user.pk).update(is_active=False)
    return clients


def grant(user: User, role: Role, account: Account) -> Grant:
    """A role at one account."""
    return Grant.objects.create(
        user=user,
        role=Group.objects.get(name=role),
        account=account,
        granted_at=timezone.now(),
    )
