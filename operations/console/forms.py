"""The console's forms. Nothing is chosen in advance."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from operations.console import wording
from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.domain.statuses import Attention
from operations.services.weighing import Decision


class _Seen(forms.Form):
    """What the page showed: the row's revision, and the last entries of its history."""

    revision = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    seen = forms.RegexField(r"^[0-9]{1,18}\.[0-9]{1,18}$", widget=forms.HiddenInput)


class ClosingForm(_Seen):
    """A person's decision."""

    outcome = forms.ChoiceField(
        choices=list(wording.OUTCOME.items()),
        error_messages={"required": _("Choose succeeded or failed.")},
    )
    kind = forms.ChoiceField(
        label=_("Evidence"),
        choices=[("", _("Choose what you saw")), *wording.EVIDENCE.items()],
        error_messages={"required": _("Choose what you saw.")},
    )
    reference = forms.CharField(label=_("Reference"), max_length=255, required=False)
    note = forms.CharField(
        label=_("Note"),
        max_length=4_000,
        widget=forms.Textarea,
        error_messages={"required": _("Write a note: what did you find, and where?")},
    )

    def clean(self) -> dict[str, Any]:
        """An absence can't show that the refund exists."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if (
            cleaned.get("outcome") == ClosingOutcome.SUCCEEDED
            and cleaned.get("kind") == EvidenceKind.ABSENT_IN_LOOKUP
        ):
            self.add_error("kind", _("An absence can't show that the refund exists."))
        return cleaned

    def decision(self) -> Decision:
        """The decision of a valid form."""
        cleaned = self.cleaned_data
        return Decision(
            outcome=ClosingOutcome(cleaned["outcome"]),
            evidence_kind=EvidenceKind(cleaned["kind"]),
            evidence_reference=cleaned["reference"],
            note=cleaned["note"],
            revision=cleaned["revision"],
        )


class AnswerForm(_Seen):
    """A second person's answer to a proposal."""

    note = forms.CharField(
        label=_("Your note"),
        max_length=4_000,
        widget=forms.Textarea,
        error_messages={"required": _("Write a note: what did you check?")},
    )


class ClearFlagForm(_Seen):
    """Why a flag can go."""

    attention = forms.ChoiceField(choices=[(flag, flag) for flag in Attention])
    reason = forms.CharField(
        label=_("Why can it go?"),
        max_length=4_000,
        widget=forms.Textarea,
        error_messages={"required": _("Say why the flag can be cleared.")},
    )


class LinkForm(forms.Form):
    """Which operation a refund belongs to, and what shows it."""

    operation = forms.UUIDField(error_messages={"required": _("Choose an operation.")})
    revision = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    note = forms.CharField(
        label=_("What shows that they belong together?"),
        max_length=4_000,
        widget=forms.Textarea,
        error_messages={"required": _("Write a note: what shows that they belong together?")},
    )


class OutsideForm(forms.Form):
    """How a person knows that something was made outside."""

    reason = forms.CharField(
        max_length=4_000,
        widget=forms.Textarea,
        error_messages={"required": _("Say how you know.")},
    )


class ReasonForm(forms.Form):
    """Why something is done."""

    reason = forms.CharField(max_length=500, error_messages={"required": _("Say why.")})


class KeyForm(forms.Form):
    """The name that people recognise a key by."""

    name = forms.CharField(
        max_length=100,
        error_messages={
            "required": _("Name who will use the key."),
            "max_length": _("The name can have 100 characters."),
        },
    )

    def clean_name(self) -> str:
        """One line of text that can be shown."""
        name: str = self.cleaned_data["name"]
        if not name.isprintable():
            raise forms.ValidationError(
                _("The name can't have control characters or broken Unicode.")
            )
        return name


class PolicyForm(forms.Form):
    """On or off, and why."""

    enabled = forms.ChoiceField(choices=[("on", _("On")), ("off", _("Off"))])
    reason = forms.CharField(
        max_length=4_000,
        widget=forms.Textarea,
        error_messages={"required": _("Say why.")},
    )
