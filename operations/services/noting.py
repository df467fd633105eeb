"""Noting: a person writes something beside an operation. It changes nothing of it."""

from uuid import UUID

from django.db import transaction

from operations.domain.audit import Actor, ActorKind
from operations.domain.sentences import Refusal, say
from operations.models import AuditEntry, Note
from operations.services.engine import Engine
from operations.services.settling import lock


class NoteRefused(Refusal):
    """This can't be kept as a note; nothing was written."""


@transaction.atomic
def add_note(
    *, engine: Engine, operation_id: UUID, text: str, form_token: str, actor: Actor
) -> Note:
    """Keep a note for good. The same form sent twice is one note. Raises NoteRefused."""
    if actor.kind is not ActorKind.PERSON:
        raise NoteRefused(say("Only a person writes a note."))
    if not text.strip():
        raise NoteRefused(say("Write something, or leave it."))
    operation = lock(operation_id)
    known = operation.notes.filter(form_token=form_token).first()
    if known is not None:
        return known
    now = engine.clock()
    note = Note.objects.create(
        operation=operation,
        text=text.strip(),
        form_token=form_token,
        written_by=actor.id,
        written_by_name=actor.name,
        written_at=now,
    )
    AuditEntry.append(
        operation_id=operation.pk,
        actor=actor,
        action="noted",
        now=now,
        before=operation.snapshot(),
        after=operation.snapshot() | {"note": note.pk},
        reason=note.text,
    )
    return note
