"""What became of events, for tests to ask."""

from operations.models import EventHandling, InboxItem


def waiting(event_id: str = "evt_1") -> InboxItem:
    """The item of an event that waits."""
    return InboxItem.objects.get(provider_event_id=event_id)


def handled(event_id: str = "evt_1") -> EventHandling:
    """What became of an event that was handled, and waits no more."""
    assert not InboxItem.objects.filter(provider_event_id=event_id).exists()
    return EventHandling.objects.get(provider_event_id=event_id)
