"""Who works on an operation, and who is looking at it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from operations.domain.claims import PRESENT_FOR


@dataclass(frozen=True, kw_only=True)
class AtWork:
    """The claim that holds now ("" for none) and the names of the others who are looking."""

    holder: str
    holder_name: str
    expires_at: datetime | None
    viewers: list[str]


_SQL = """
SELECT claim.holder, claim.holder_name, claim.expires_at,
       ARRAY(SELECT person_name FROM operations_presence
             WHERE operation_id = asked.id AND seen_at > %(since)s AND person <> %(person)s
             ORDER BY person_name LIMIT 5)
FROM (SELECT %(operation)s::uuid AS id) AS asked
LEFT JOIN operations_claim AS claim
    ON claim.operation_id = asked.id AND claim.expires_at > %(now)s
"""


def at_work(operation_id: UUID, *, person: str, now: datetime) -> AtWork:
    """As `person`, who is left out of the viewers, sees it. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            _SQL,
            {"operation": operation_id, "person": person, "now": now, "since": now - PRESENT_FOR},
        )
        holder, name, expires_at, viewers = cursor.fetchone()
    return AtWork(
        holder=holder or "", holder_name=name or "", expires_at=expires_at, viewers=viewers
    )
