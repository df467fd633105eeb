"""What people type in their own words. A secret that is pasted with it is not kept."""

from typing import Any

from django import forms

from operations.domain.masking import masked_text


class Remark(forms.CharField):
    """A text of several lines, its keys and card numbers masked before anybody stores it."""

    widget = forms.Textarea

    def clean(self, value: Any) -> str:
        """The text, without secrets."""
        return masked_text(super().clean(value))
