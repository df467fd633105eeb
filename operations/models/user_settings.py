"""How a person wants the console."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class Theme(models.TextChoices):
    """Light or dark; "" follows the system."""

    LIGHT = "light", "Light"
    DARK = "dark", "Dark"


class UserSettings(models.Model):
    """One person's choices. `time_zone` is an IANA name, "" is UTC; `language` "" is the browser's.

    `shortcuts`: whether single keys do something.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="console_settings",
    )
    time_zone = models.CharField(max_length=64, blank=True, default="")
    language = models.CharField(max_length=8, blank=True, default="")
    theme = models.CharField(max_length=8, blank=True, default="")
    shortcuts = models.BooleanField(default=True)
    dense = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(theme__in=["", *Theme.values]), name="user_settings_theme_known"
            ),
            models.CheckConstraint(
                condition=Q(language__in=["", *(code for code, _ in settings.LANGUAGES)]),
                name="user_settings_language_known",
            ),
        ]

    def __str__(self) -> str:
        return f"settings of {self.user_id}"
