"""What allauth asks of us: who may sign up, what is confirmed again, and how secrets are kept."""

import base64
import hashlib
from functools import cache

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from cryptography.fernet import Fernet
from django.conf import settings
from django.http import HttpRequest

from operations.console.proving import proved_recently


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """People are made by administrators."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Nobody signs themselves up."""
        return False

    def is_reauthentication_required(self, *, app: str, **kwargs: object) -> bool:
        """What one signs in with is changed only by who has just proved who they are."""
        return not proved_recently(context.request)

    def add_message(
        self, request: HttpRequest, level: int, *args: object, **kwargs: object
    ) -> None:
        """The pages themselves show what has become of it."""


class SocialAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Whom the identity provider knows may come in. Without a role they see nothing."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: object) -> bool:
        """A person is made at the first sign-in."""
        return settings.RECONCILE.sign_in.oidc is not None


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """What second factors are checked with is not kept in the clear."""

    def encrypt(self, text: str) -> str:
        """With a key that is made of Django's."""
        return _box().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """The other way round."""
        return _box().decrypt(encrypted_text.encode()).decode()


@cache
def _box() -> Fernet:
    secret = hashlib.sha256(b"second factors:" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(secret))
