"""The queue's filters; all of them live in the address."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from operations.console import wording
from operations.models import Account, Operation


def _accounts(request: object) -> QuerySet[Account]:
    return Account.objects.order_by("name", "livemode")


class QueueFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Narrows a view. A value that means nothing is named as an error and filters nothing."""

    status = django_filters.ChoiceFilter(
        label=_("Status"), choices=list(wording.STATUS.items()), empty_label=_("Any")
    )
    reason = django_filters.ChoiceFilter(
        field_name="unknown_reason",
        label=_("Reason"),
        choices=list(wording.REASON.items()),
        empty_label=_("Any"),
    )
    attention = django_filters.ChoiceFilter(
        label=_("Flag"),
        choices=list(wording.ATTENTION.items()),
        empty_label=_("Any"),
        method="with_flag",
    )
    account = django_filters.ModelChoiceFilter(
        label=_("Account"), queryset=_accounts, empty_label=_("All")
    )

    class Meta:
        model = Operation
        fields: tuple[str, ...] = ()

    def with_flag(
        self, operations: QuerySet[Operation], name: str, value: str
    ) -> QuerySet[Operation]:
        """Operations that carry this flag."""
        return operations.filter(attention__contains=[value]).exclude(attention=[])

    @property
    def set_names(self) -> list[str]:
        """The filters that are set and understood."""
        cleaned: dict[str, Any] = self.form.cleaned_data if self.form.is_valid() else {}
        return [name for name, value in cleaned.items() if value]
