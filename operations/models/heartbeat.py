"""When each part of the system last said that it is at work."""

from datetime import datetime

from django.db import connection, models

WORKER = "worker"


class Heartbeat(models.Model):
    """One row a part, written over and over; time in UTC."""

    name = models.CharField(max_length=32, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name

    @classmethod
    def beat(cls, name: str, *, now: datetime) -> None:
        """Say that `name` is at work. A beat that comes late moves nothing back."""
        with connection.cursor() as cursor:
            cursor.execute(_BEAT, {"name": name, "at": now})


_BEAT = """
INSERT INTO operations_heartbeat AS beat (name, at) VALUES (%(name)s, %(at)s)
ON CONFLICT (name) DO UPDATE SET at = EXCLUDED.at WHERE beat.at < EXCLUDED.at
"""
