"""The forms for acting on many at once."""

from collections.abc import Sequence

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from operations.console import wording
from operations.console.remarks import Remark
from operations.domain.bulk import BulkAction
from operations.services.actors import name_of
from operations.services.bulk import KINDS_FOR_FAILED, Begin

#: Takes a list away as a file; it is no run.
EXPORT = "export"
OF_OPERATIONS = tuple(action for action in BulkAction if action is not BulkAction.MARK_OUTSIDE)


class SelectionForm(forms.Form):
    """Which operations were chosen in a list, and what for."""

    action = forms.ChoiceField(choices=[(name, name) for name in (*OF_OPERATIONS, EXPORT)])
    all = forms.BooleanField(required=False)
    address = forms.CharField(required=False, max_length=2_000)


class BeginForm(forms.Form):
    """Why it is done to all of them, and what it rests on."""

    count = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    note = Remark(
        label=_("Note"),
        max_length=4_000,
        error_messages={"required": _("Write a note: why is this done to all of them?")},
    )
    kind = forms.ChoiceField(
        label=_("Evidence"),
        required=False,
        choices=[
            ("", _("Choose what you saw")),
            *((kind, wording.EVIDENCE[kind]) for kind in KINDS_FOR_FAILED),
        ],
    )
    reference = forms.CharField(label=_("Reference"), max_length=255, required=False)
    assignee = forms.ChoiceField(label=_("Who is to work on them?"), required=False)
    typed = forms.CharField(max_length=20, required=False)

    def clean(self) -> dict[str, object]:
        """Whoever closes many types out how many."""
        cleaned: dict[str, object] = super().clean() or self.cleaned_data
        if self.wants_typing and str(cleaned.get("typed", "")).strip() != str(cleaned.get("count")):
            self.add_error("typed", _("Type the number to go on."))
        return cleaned

    def __init__(
        self, *args: object, action: str, people: Sequence[User] = (), **more: object
    ) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.wants_typing = BulkAction(action).decides
        self.wants_evidence = action == BulkAction.CLOSE_FAILED
        self.wants_assignee = action == BulkAction.ASSIGN
        choices = [(str(user.pk), name_of(user)) for user in people]
        self.fields["assignee"].choices = [("", _("Choose a person")), *choices]  # type: ignore[attr-defined]

    def begin(self) -> Begin:
        """What a valid form says."""
        cleaned = self.cleaned_data
        return Begin(
            count=cleaned["count"],
            note=cleaned["note"],
            kind=cleaned["kind"],
            reference=cleaned["reference"],
            assignee=cleaned["assignee"],
        )


class BulkAnswerForm(forms.Form):
    """A second person's answer to a run, or the first one's taking it back."""

    note = Remark(
        max_length=4_000,
        error_messages={"required": _("Write a note: what did you check?")},
    )
