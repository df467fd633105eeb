"""Who asked for an operation, each time it was asked for."""

from django.db import models
from django.db.models import Q

from operations.domain.identity import KIND_REFUND
from operations.models.account import Account, ApiKey
from operations.models.operation import Operation
from operations.models.triggers import append_only, kept_for_a_day


class Request(models.Model):
    """One time that somebody asked. Several requests lead to one operation."""

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="requests", db_index=False
    )
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    tool_call_id = models.CharField(max_length=255, blank=True, default="")
    agent_run_id = models.CharField(max_length=255, blank=True, default="")
    input_hash = models.CharField(max_length=64)
    payment_asked = models.CharField(max_length=255)
    received_at = models.DateTimeField()

    class Meta:
        constraints = [
            # Serves the search box, too.
            models.UniqueConstraint(
                fields=["tool_call_id", "agent_run_id", "api_key"],
                condition=~Q(tool_call_id=""),
                nulls_distinct=False,
                name="request_tool_call_once",
            ),
        ]
        indexes = [
            # Serves: the timeline.
            models.Index(fields=["operation", "received_at"], name="request_by_operation"),
            # Serves: the search box.
            models.Index(
                fields=["agent_run_id"],
                condition=~Q(agent_run_id=""),
                name="request_by_run",
            ),
        ]
        triggers = append_only("request")

    def __str__(self) -> str:
        return self.tool_call_id or f"request {self.pk}"


class RequestToken(models.Model):
    """A `client_request_token` and the operation it stands for."""

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="+", db_index=False)
    customer_account = models.CharField(max_length=255, blank=True, default="")
    kind = models.CharField(max_length=16, default=KIND_REFUND)
    token = models.CharField(max_length=255)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="tokens")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["token", "customer_account", "account", "kind"],
                name="request_token_once",
            ),
        ]
        triggers = kept_for_a_day("request_token")

    def __str__(self) -> str:
        return self.token
