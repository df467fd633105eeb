"""The console's forms. Nothing is chosen in advance."""

from typing import Any
from uuid import uuid4

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from operations.console import wording
from operations.console.remarks import Remark
from operations.console.saying import in_words
from operations.domain.closure import ClosingOutcome, EvidenceKind, ReopenGround
from operations.domain.money import Money
from operations.domain.orphans import Link
from operations.domain.sentences import Sentence
from operations.domain.statuses import Attention
from operations.domain.typed_amounts import typed_amount
from operations.models import Account
from operations.services.keys import KeyScope, end_of_day
from operations.services.reopening import Taking
from operations.services.weighing import Decision


class _Seen(forms.Form):
    """What the page showed: the row's revision, and the last entries of its history."""

    revision = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    seen = forms.RegexField(r"^[0-9]{1,18}\.[0-9]{1,18}$", widget=forms.HiddenInput)


class _Once(forms.Form):
    """What names one form, so that sending it twice is one act."""

    form_token = forms.UUIDField(required=False, widget=forms.HiddenInput)

    def token(self) -> str:
        """The name of a valid form; a new one for a form that came without."""
        return str(self.cleaned_data.get("form_token") or uuid4())


def typed_amount_problem(text: str, money: Money) -> str:
    """Why what was typed is not this amount; "" when it is."""
    typed = typed_amount(text, money.currency)
    if typed == money.amount:
        return ""
    if isinstance(typed, Sentence):
        return in_words(typed)
    return gettext("Type {amount} to go on.").format(amount=money.major())


class ClosingForm(_Seen, _Once):
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
    note = Remark(
        label=_("Note"),
        max_length=4_000,
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
            form_token=self.token(),
        )


class AnswerForm(_Seen):
    """A second person's answer to a proposal."""

    note = Remark(
        label=_("Your note"),
        max_length=4_000,
        error_messages={"required": _("Write a note: what did you check?")},
    )


class ReopenForm(_Seen, _Once):
    """Why a closing does not hold."""

    ground = forms.ChoiceField(
        choices=list(wording.GROUND.items()),
        error_messages={"required": _("Choose why it does not hold.")},
    )
    note = Remark(
        max_length=4_000,
        error_messages={"required": _("Say why the decision does not hold.")},
    )

    def taking(self) -> Taking:
        """What a valid form asks for."""
        cleaned = self.cleaned_data
        return Taking(
            ground=ReopenGround(cleaned["ground"]),
            note=cleaned["note"],
            revision=cleaned["revision"],
            form_token=self.token(),
        )


class ReissueForm(_Seen):
    """Why a failed refund is made anew, and its amount typed out."""

    typed = forms.CharField(max_length=40, required=False)
    reason = Remark(
        max_length=4_000,
        error_messages={"required": _("Say why it is made anew.")},
    )


class NoteForm(_Once):
    """A remark."""

    text = Remark(
        max_length=4_000,
        error_messages={"required": _("Write something, or leave it.")},
    )


class ClearFlagForm(_Seen):
    """Why a flag can go."""

    attention = forms.ChoiceField(choices=[(flag, flag) for flag in Attention])
    reason = Remark(
        label=_("Why can it go?"),
        max_length=4_000,
        error_messages={"required": _("Say why the flag can be cleared.")},
    )


class LinkForm(forms.Form):
    """Which operation a refund belongs to, and what shows it."""

    operation = forms.UUIDField(error_messages={"required": _("Choose an operation.")})
    revision = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    note = Remark(
        label=_("What shows that they belong together?"),
        max_length=4_000,
        error_messages={"required": _("Write a note: what shows that they belong together?")},
    )

    def link(self) -> Link:
        """What a valid form says."""
        cleaned = self.cleaned_data
        return Link(
            operation_id=cleaned["operation"], revision=cleaned["revision"], note=cleaned["note"]
        )


class OutsideForm(forms.Form):
    """How a person knows that something was made outside."""

    reason = Remark(
        max_length=4_000,
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

    accounts = forms.ModelMultipleChoiceField(Account.objects.all(), required=False)
    read_only = forms.BooleanField(required=False)
    expires = forms.DateField(required=False)

    def scope(self) -> KeyScope:
        """What it may do; its last day ends in UTC."""
        day = self.cleaned_data["expires"]
        return KeyScope(
            accounts=list(self.cleaned_data["accounts"]),
            may_write=not self.cleaned_data["read_only"],
            expires_at=end_of_day(day.isoformat()) if day else None,
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
    reason = Remark(
        max_length=4_000,
        error_messages={"required": _("Say why.")},
    )
