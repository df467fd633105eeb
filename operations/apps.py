from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class OperationsConfig(AppConfig):
    """The product: refunds, what was sent for them, and what is known about them."""

    name = "operations"
    default_auto_field = "django.db.models.BigAutoField"


class StaffSiteConfig(AdminConfig):
    """Django's admin with our site."""

    default_site = "operations.console.staff_site.StaffSite"
