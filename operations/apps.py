from django.apps import AppConfig


class OperationsConfig(AppConfig):
    """The product: refunds, what was sent for them, and what is known about them."""

    name = "operations"
    default_auto_field = "django.db.models.BigAutoField"
