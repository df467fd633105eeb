"""The actors that are no person, by name."""

from django.contrib.auth.models import User

from operations.domain.audit import Actor, ActorKind

SWEEP = Actor(kind=ActorKind.JOB, id="sweep", name="Sweep")
LOOKUP_JOB = Actor(kind=ActorKind.JOB, id="check", name="Scheduled check")
TIDY = Actor(kind=ActorKind.JOB, id="tidy", name="Tidying")
SEALER = Actor(kind=ActorKind.JOB, id="seal", name="Sealing")
NOTICES = Actor(kind=ActorKind.JOB, id="notices", name="Notices")


def name_of(user: User) -> str:
    """What people are called in the records. First and last name may be longer than fits there."""
    return (user.get_full_name() or user.get_username())[:255]


def webhook_actor(event_id: str) -> Actor:
    """The provider, speaking through one event."""
    return Actor(kind=ActorKind.WEBHOOK, id=event_id, name=f"Webhook {event_id}"[:255])
