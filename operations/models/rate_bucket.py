"""The token bucket of a provider account, shared by all processes."""

from django.db import connection, models

from operations.models.account import Account


class RateBucket(models.Model):
    """One bucket per account and kind of call, kept as the moment when it is full again.

    The database's clock counts, so that hosts whose clocks differ share one bucket.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=8)
    full_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["account", "kind"], name="rate_bucket_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.account}"

    @classmethod
    def take(
        cls, *, account: Account, kind: str, per_s: float, burst: float, most_s: float
    ) -> float | None:
        """Take one token, in one statement, and say how many seconds to wait for it.

        None, and no token is taken, when the wait would be longer than `most_s`. `burst` is how
        many tokens the full bucket holds.
        """
        with connection.cursor() as cursor:
            cursor.execute(
                _TAKE,
                {
                    "account": account.pk,
                    "kind": kind,
                    "each": 1.0 / per_s,
                    "burst": burst / per_s,
                    "most": most_s,
                },
            )
            row = cursor.fetchone()
        return None if row is None else max(0.0, float(row[0]))


# Generic cell rate algorithm: `full_at` moves on by one token's time with each call.
_TAKE = """
INSERT INTO operations_ratebucket AS bucket (account_id, kind, full_at)
VALUES (%(account)s, %(kind)s, clock_timestamp() + make_interval(secs => %(each)s))
ON CONFLICT (account_id, kind) DO UPDATE
SET full_at = GREATEST(bucket.full_at, clock_timestamp()) + make_interval(secs => %(each)s)
WHERE bucket.full_at + make_interval(secs => %(each)s - %(burst)s - %(most)s) <= clock_timestamp()
RETURNING EXTRACT(EPOCH FROM
    full_at - make_interval(secs => %(burst)s) - clock_timestamp())::double precision
"""
