"""Django's admin: accounts are added here, with a reason; everything else can only be read."""

from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

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
    _ModelForm = forms.ModelForm[Account]
else:
    _ModelAdmin = admin.ModelAdmin
    _ModelForm = forms.ModelForm


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


class AccountForm(_ModelForm):
    """An account, and why there is one more."""

    reason = forms.CharField(max_length=500, label=gettext_lazy("Reason"))

    class Meta:
        model = Account
        fields = ("name", "provider", "provider_account", "livemode")


@admin.register(Account)
class AccountAdmin(_ModelAdmin):
    """Accounts are added here, and neither changed nor removed: operations were sent under them."""

    list_display = ("name", "provider", "provider_account", "livemode")
    form = AccountForm

    def save_model(
        self, request: HttpRequest, obj: Account, form: forms.Form, change: bool
    ) -> None:
        """Add it, with an entry."""
        reason = form.cleaned_data["reason"]
        add_account(engine=default_engine(), account=obj, reason=reason, actor=actor_of(request))

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """What was sent under an account has no meaning under another."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nothing is deleted."""
        return False


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Keys are made in the console and with `manage.py create_api_key`."""

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
    """The inbox. What came is read in the console, which writes down who looked."""

    list_display = ("event_id", "event_type", "received_at", "deliveries")
    search_fields = ("=event_id",)
    exclude = ("raw", "payload")
    show_full_result_count = False


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    """What was sent. What came back is read in the console, which writes down who looked."""

    exclude = ("body",)


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


for _model in (DeliveryTry, Evidence, Grant, InboxItem, Payment, Proposal, ProviderRefund):
    admin.site.register(cast("type[Model]", _model), ReadOnlyAdmin)
