"""Accounts at the provider, and the keys that callers of our API hold."""

from datetime import datetime

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from operations.domain.access import Accounts
from operations.models.triggers import no_update_when


class Account(models.Model):
    """One account at a provider, in one mode.

    `provider_account` is the provider's id of a connected account (`acct_…`), and "" for the
    account that the API key itself belongs to. None of the four can change any more: operations
    were identified and sent under them, and under another account their keys mean nothing.
    """

    name = models.SlugField(max_length=64)
    provider = models.CharField(max_length=32, default="stripe")
    provider_account = models.CharField(max_length=64, blank=True, default="")
    livemode = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=255, blank=True, default="")
    pause_reason = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "livemode"], name="account_name_once_per_mode"),
            models.UniqueConstraint(
                fields=["provider", "provider_account", "livemode"],
                name="account_once_per_provider_and_mode",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="account_frozen",
                fields=["id", "name", "provider", "provider_account", "livemode"],
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """A caller's key. Only its SHA-256 is kept; `prefix` is what people recognise it by.

    `account_ids`: the only accounts it reaches; empty: all, also those still to come. What a key
    may do is said when it is made, and never changes.
    """

    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16)
    secret_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # In the row that is read for every call, so that no call asks the database once more.
    account_ids = ArrayField(
        models.BigIntegerField(), default=list, db_default=[], blank=True, editable=False
    )
    may_write = models.BooleanField(default=True, db_default=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(expires_at__isnull=True) | Q(expires_at__gt=F("created_at")),
                name="api_key_expires_after_it_was_made",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="api_key_frozen",
                fields=[
                    *("id", "name", "prefix", "secret_hash", "created_at"),
                    *("account_ids", "may_write", "expires_at"),
                ],
            ),
            no_update_when(
                "api_key_stays_revoked",
                'OLD."revoked_at" IS NOT NULL'
                ' AND NEW."revoked_at" IS DISTINCT FROM OLD."revoked_at"',
            ),
            pgtrigger.Trigger(
                name="api_key_reaches_what_is",
                operation=pgtrigger.Insert,
                when=pgtrigger.Before,
                func="""
                    IF EXISTS (
                        SELECT FROM unnest(NEW.account_ids) AS named (id)
                        WHERE NOT EXISTS (
                            SELECT FROM operations_account AS account WHERE account.id = named.id)
                    ) THEN
                        RAISE EXCEPTION 'a key reaches only accounts that exist';
                    END IF;
                    RETURN NEW;
                """,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def has_ended(self, now: datetime) -> bool:
        """Whether it was revoked or has expired."""
        return self.revoked_at is not None or (
            self.expires_at is not None and self.expires_at <= now
        )

    @property
    def accounts(self) -> Accounts:
        """The accounts it reaches; None: all."""
        return frozenset(self.account_ids) if self.account_ids else None
