"""The form that takes a report. Its columns are found by name unless others are given."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from operations.domain.report_columns import (
    AmountUnit,
    Column,
    ColumnMapping,
    MappingRefused,
    read_mapping,
)

_LABELS = {
    Column.REFUND: _("Refund id"),
    Column.CHARGE: _("Charge"),
    Column.PAYMENT_INTENT: _("Payment intent"),
    Column.AMOUNT: _("Amount"),
    Column.CURRENCY: _("Currency"),
    Column.STATUS: _("Status"),
    Column.CREATED: _("Created"),
    Column.FAILURE_REASON: _("Failure reason"),
}


class ReportForm(forms.Form):
    """A file, the account that it is of, and names of columns that we would not find."""

    account = forms.CharField(max_length=64, required=False)
    file = forms.FileField(
        error_messages={
            "required": _("Choose a file."),
            "empty": _("The file is empty."),
            "max_length": _("The file's name is too long."),
        },
        max_length=255,
    )
    amounts = forms.ChoiceField(
        label=_("Amounts are written"),
        choices=[
            (AmountUnit.MAJOR, _("as people write them: 12.50")),
            (AmountUnit.MINOR, _("in the smallest unit: 1250")),
        ],
        required=False,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for column, label in _LABELS.items():
            self.fields[f"column_{column}"] = forms.CharField(
                label=label, max_length=200, required=False
            )

    def columns(self) -> list[forms.BoundField]:
        """The fields that name columns."""
        return [self[f"column_{column}"] for column in Column]

    def maps(self) -> bool:
        """Whether a column was named."""
        return any(field.value() for field in self.columns())

    def mapping(self) -> ColumnMapping:
        """How the file's columns are called."""
        given = {str(column): self.cleaned_data[f"column_{column}"] for column in Column}
        return read_mapping({**given, "amounts": self.cleaned_data["amounts"] or AmountUnit.MAJOR})

    def clean(self) -> dict[str, Any]:
        """A mapping that can't be is said in the form."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                self.mapping()
            except MappingRefused as error:
                self.add_error(None, str(error))
        return cleaned
