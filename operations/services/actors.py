"""The actors that are no person, by name."""

from operations.domain.audit import Actor, ActorKind

SWEEP = Actor(kind=ActorKind.JOB, id="sweep", name="Sweep")
LOOKUP_JOB = Actor(kind=ActorKind.JOB, id="check", name="Scheduled check")
TIDY = Actor(kind=ActorKind.JOB, id="tidy", name="Tidying")
SEALER = Actor(kind=ActorKind.JOB, id="seal", name="Sealing")
NOTICES = Actor(kind=ActorKind.JOB, id="notices", name="Notices")


def webhook_actor(event_id: str) -> Actor:
    """The provider, speaking through one event."""
    return Actor(kind=ActorKind.WEBHOOK, id=event_id, name=f"Webhook {event_id}"[:255])
