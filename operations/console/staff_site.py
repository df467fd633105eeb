"""Django's admin as a site: who is let in, and by which door."""

from collections.abc import Iterable
from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.utils.translation import gettext_lazy as _

from operations.console.proving import wants_second_factor
from operations.domain.access import Act
from operations.queries.access import read_rights


class StaffSite(AdminSite):
    """For staff who read at every account: its lists know nothing of single ones."""

    site_header = site_title = _("Reconcile: the tables")

    def register(
        self,
        model_or_iterable: type[Model] | Iterable[type[Model]],
        admin_class: "type[ModelAdmin[Any]] | None" = None,
        **options: Any,
    ) -> None:
        """Take our own pages alone: those of packages change rows without a reason and an entry."""
        if admin_class is not None and admin_class.__module__.startswith("operations."):
            super().register(model_or_iterable, admin_class, **options)

    def has_permission(self, request: HttpRequest) -> bool:
        """Whether this is one of them."""
        if not super().has_permission(request):
            return False
        rights = read_rights(request.user)
        return Act.READ in rights.everywhere and not wants_second_factor(request, rights)

    def login(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:
        """There is one door. Who is in already and may not come here is told so."""
        if isinstance(request.user, User):
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next", "/admin/"), resolve_url("login"))
