"""Forms about subscriptions. Nothing is chosen in advance."""

from django import forms
from django.utils.translation import gettext_lazy as _

from operations.console import notice_wording
from operations.domain.addresses import MAX_LENGTH
from operations.domain.notices import NoticeType
from operations.models import Account
from operations.services.subscribing import KEEP_OLD_SECRET_S, Wanted


class SubscriptionForm(forms.Form):
    """An address that shall be told."""

    address = forms.CharField(
        max_length=MAX_LENGTH,
        error_messages={"required": _("Give the address that shall be told.")},
    )
    name = forms.CharField(max_length=100, required=False)
    types = forms.MultipleChoiceField(choices=list(notice_wording.TYPE.items()), required=False)
    account = forms.ModelChoiceField(
        queryset=Account.objects.order_by("name", "livemode"), required=False
    )

    def wanted(self) -> Wanted:
        """What a valid form asks for."""
        cleaned = self.cleaned_data
        return Wanted(
            address=cleaned["address"],
            name=cleaned["name"],
            types=[NoticeType(kind) for kind in cleaned["types"]],
            account=cleaned["account"],
        )


class RollForm(forms.Form):
    """How the old secret ends."""

    old = forms.ChoiceField(
        choices=[
            ("keep", _("It signs beside the new one for 24 hours")),
            ("end", _("It ends at once, because somebody else may know it")),
        ],
        error_messages={"required": _("Choose what becomes of the old secret.")},
    )

    @property
    def keep_old_s(self) -> int:
        """Seconds, of a valid form."""
        return KEEP_OLD_SECRET_S if self.cleaned_data["old"] == "keep" else 0


class DisableForm(forms.Form):
    """Why it is told nothing more."""

    reason = forms.CharField(
        max_length=400,
        error_messages={"required": _("Say why it is told nothing more.")},
    )
