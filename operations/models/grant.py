"""A role at one account."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models

from operations.models.account import Account


class Grant(models.Model):
    """This person has this role at this account. A role everywhere is a person's group instead.

    The permissions of all roles hang on this model; a group that has one may do what it names.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="grants"
    )
    role = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+")
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    granted_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        permissions = [
            ("read", "Read operations and what belongs to them"),
            ("read_raw", "Read what was recorded, as it was recorded"),
            ("export", "Take lists and bundles out"),
            ("decide", "Claim, check and close operations"),
            ("bulk", "Decide many operations at once"),
            ("approve", "Answer as the second person"),
            ("administer", "Keep accounts"),
            ("keys", "Keep API keys"),
            ("subscriptions", "Keep who is told"),
            ("policies", "Keep policies and limits"),
            ("people", "Keep people and their roles"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "account", "role"], name="grant_once_per_account_and_role"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.role_id} at {self.account_id}"
