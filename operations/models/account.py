"""Accounts at the provider, and the keys that callers of our API hold."""

import pgtrigger
from django.db import models


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
    """A caller's key. Only its SHA-256 is kept; `prefix` is what people recognise it by."""

    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16)
    secret_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
