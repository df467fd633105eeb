"""Django's admin: accounts and keys can be kept here; everything else can only be read."""

from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.http import HttpRequest

from operations.admin.bulk import BulkActions, actor_of
from operations.models import (
    Account,
    ApiKey,
    Attempt,
    AuditEntry,
    Delivery,
    DeliveryTry,
    EventHandling,
    Evidence,
    Grant,
    InboxItem,
    Operation,
    Payment,
    Proposal,
    ProviderRefund,
    Subscription,
    WebhookEvent,
)
from operations.services.accounts import add_account
from operations.services.engine import default_engine

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin


class ReadOnlyAdmin(_ModelAdmin):
    """Shows rows and changes none: changes go through the services."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nothing is added by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nothing is changed by hand."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nothing is deleted."""
        return False


@admin.register(Account)
class AccountAdmin(_ModelAdmin):
    """Accounts are added here, which is audited. They can't be changed or deleted."""

    list_display = ("name", "provider", "provider_account", "livemode")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """What was sent under an account has no meaning under another."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """The trail names it, and roles at it are given and taken in the console."""
        return False

    def save_model(self, request: HttpRequest, obj: Account, form: Any, change: bool) -> None:
        """Add it, and say who did."""
        add_account(engine=default_engine(), account=obj, actor=actor_of(request))


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Keys are made with `manage.py create_api_key`."""

    list_display = ("name", "prefix", "created_at", "last_used_at", "revoked_at")
    exclude = ("secret_hash",)


@admin.register(Operation)
class OperationAdmin(BulkActions, ReadOnlyAdmin):
    """One refund, one row."""

    list_display = ("id", "order_id", "amount", "currency", "status", "created_at")
    list_filter = ("status", "unknown_reason")
    search_fields = ("order_id", "provider_object_id", "idempotency_key")
    show_full_result_count = False


@admin.register(WebhookEvent)
class WebhookEventAdmin(ReadOnlyAdmin):
    """The inbox. The raw bytes stay in the database."""

    list_display = ("event_id", "event_type", "received_at", "deliveries")
    search_fields = ("=event_id",)
    exclude = ("raw",)
    show_full_result_count = False


@admin.register(EventHandling)
class EventHandlingAdmin(ReadOnlyAdmin):
    """What became of the events."""

    list_display = ("provider_event_id", "event_type", "handling", "handled_at")
    list_filter = ("handling",)
    search_fields = ("=provider_event_id",)
    show_full_result_count = False


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    """Who is told. Subscriptions are changed in the console, and their secrets shown nowhere."""

    list_display = ("address", "name", "created_at", "disabled_at", "failures")
    exclude = ("secret", "previous_secret")


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    """The outbox."""

    list_display = ("message_id", "type", "subscription", "state", "occurred_at", "tries")
    list_filter = ("state", "type")
    search_fields = ("message_id",)
    show_full_result_count = False


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Who did what."""

    list_display = ("at", "chain", "number", "actor_name", "action")
    search_fields = ("chain", "actor_name")


# Who may do what is changed in the console, with a reason, and not here.
@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    """People, without their passwords."""

    list_display = ("username", "first_name", "last_name", "is_active", "last_login")
    exclude = ("password",)


@admin.register(Group)
class GroupAdmin(ReadOnlyAdmin):
    """Roles, with their permissions."""


for _model in (Attempt, DeliveryTry, Evidence, Grant, InboxItem, Payment, Proposal, ProviderRefund):
    admin.site.register(cast("type[Model]", _model), ReadOnlyAdmin)
