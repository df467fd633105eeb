"""How a person wants the console: their own choice, on record like every other change."""

from typing import TypedDict

from django.contrib.auth.models import User
from django.db import transaction

from operations.domain.audit import Actor
from operations.models import AuditEntry, UserSettings
from operations.services.engine import Engine


class Wanted(TypedDict):
    """Every choice there is; "" leaves it to the system."""

    time_zone: str
    language: str
    theme: str
    shortcuts: bool
    dense: bool


@transaction.atomic
def save_settings(*, engine: Engine, user: User, wanted: Wanted, actor: Actor) -> None:
    """Keep a person's choices. Choosing what was chosen already changes nothing."""
    kept, _ = UserSettings.objects.get_or_create(user=user)
    before = {name: getattr(kept, name) for name in wanted}
    if before == dict(wanted):
        return
    UserSettings.objects.filter(user=user).update(**wanted)
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action="settings_changed",
        now=engine.clock(),
        before=before,
        after=dict(wanted),
    )
