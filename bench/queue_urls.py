"""The console's addresses and, beside them, Django's admin as it comes, for the same table."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.urls import path

from operations.models import Operation
from reconcile.urls import urlpatterns as ours

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin


class StockAdmin(_ModelAdmin):
    """What somebody would write down first. As many rows as a page of the queue."""

    list_display = (
        "id",
        "account",
        "order_id",
        "amount",
        "currency",
        "status",
        "unknown_reason",
        "attention",
        "created_at",
        "key_window_closes_at",
    )
    list_select_related = ("account",)
    list_per_page = 50
    search_fields = ("id", "order_id", "provider_object_id", "idempotency_key")
    ordering = ("-created_at", "-id")


stock = admin.AdminSite(name="stock")
stock.register(Operation, StockAdmin)

urlpatterns = [*ours, path("stock/", stock.urls)]
