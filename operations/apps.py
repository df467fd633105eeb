from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.db.models.signals import post_migrate


class OperationsConfig(AppConfig):
    """The product: refunds, what was sent for them, and what is known about them."""

    name = "operations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Rights follow every migration; what is wrong with them `check --deploy` says.

        What happens around signing in is written down.
        """
        from operations import checks
        from operations.console import sign_in_trail  # noqa: F401
        from operations.models import grants

        checks.register_all()
        post_migrate.connect(grants.after_migrate, dispatch_uid="operations.grants")


class StaffSiteConfig(AdminConfig):
    """Django's admin with our site."""

    default_site = "operations.console.staff_site.StaffSite"
