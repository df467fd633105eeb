"""The form of a person's own settings."""

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from operations.console.preferences import time_zones
from operations.models import Theme
from operations.services.preferring import Wanted


class SettingsForm(forms.Form):
    """Every choice, with what it is called."""

    time_zone = forms.ChoiceField(label=_("Time zone"), required=False)
    language = forms.ChoiceField(label=_("Language"), required=False)
    theme = forms.ChoiceField(
        label=_("Colours"),
        required=False,
        choices=[
            ("", _("As the system has them")),
            (Theme.LIGHT, _("Light")),
            (Theme.DARK, _("Dark")),
        ],
    )
    shortcuts = forms.BooleanField(
        label=_("Single keys do something (j, k, x, c, l, /, ?)"), required=False
    )
    dense = forms.BooleanField(label=_("Narrow rows: more fits on a screen"), required=False)

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.choose("time_zone", [("", "UTC"), *((name, name) for name in sorted(time_zones()))])
        self.choose("language", [("", _("As the browser asks")), *settings.LANGUAGES])
        for name in ("time_zone", "language", "theme"):
            self.fields[name].widget.attrs["class"] = "input"

    def choose(self, name: str, choices: list[tuple[str, object]]) -> None:
        """What one of the fields offers."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - for the type checker
        field.choices = choices

    def wanted(self) -> Wanted:
        """What was chosen."""
        wanted: Wanted = {**self.cleaned_data}  # type: ignore[typeddict-item]
        return wanted
