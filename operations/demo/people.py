"""Who can log in to the console of the demo, and the key of its agent."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import transaction

from operations.domain.audit import Actor, ActorKind
from operations.services.engine import default_engine
from operations.services.keys import create_api_key
from reconcile.local.secrets import local_secret

#: Each role's name is also that of its group and of the demo's user in it.
ROLES: Mapping[str, str] = {
    "viewer": "reads",
    "operator": "looks up and closes",
    "approver": "is the second person",
    "admin": "keeps accounts and keys",
}
_PASSWORD_LENGTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user of the console, with the password in plain: local data only."""

    name: str
    password: str
    may: str


@transaction.atomic
def make_logins(data_dir: Path) -> list[Login]:
    """Make the four users, or bring them back to their passwords, which the data folder keeps."""
    logins = []
    for name, may in ROLES.items():
        password = local_secret(data_dir, f"demo-password-{name}")[:_PASSWORD_LENGTH]
        user, _ = get_user_model().objects.get_or_create(username=name)
        user.is_active = True
        user.is_staff = user.is_superuser = name == "admin"
        if not user.check_password(password):
            user.set_password(password)
        user.save()
        user.groups.set([Group.objects.get_or_create(name=name)[0]])
        logins.append(Login(name=name, password=password, may=may))
    return logins


def make_agent_key(run: int) -> str:
    """A new key for the agent of one run; it can't be read again later."""
    actor = Actor(kind=ActorKind.COMMAND, id="demo", name="manage.py demo")
    name = f"Northwind agent, run {run}"
    return create_api_key(engine=default_engine(), name=name, actor=actor)[1]
