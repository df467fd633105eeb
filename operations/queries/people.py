"""People with what they may do, for those who keep them."""

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Prefetch, QuerySet

from operations.models import Grant

#: More than these are not shown at once.
MOST_SHOWN = 500


def people() -> QuerySet[User]:
    """Everybody with roles, grants and whether a second factor is set up. Three queries."""
    factor = Authenticator.objects.filter(user=OuterRef("pk")).exclude(type="recovery_codes")
    grants = Grant.objects.select_related("role", "account").order_by("account__name", "role__name")
    return (
        User.objects.annotate(has_second_factor=Exists(factor))
        .prefetch_related("groups", Prefetch("grants", queryset=grants))
        .order_by("-is_active", "username")
    )
