"""What allauth asks of us: who may sign up, what is confirmed again, and how secrets are kept."""

import base64
import hashlib
from functools import cache
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from cryptography.fernet import Fernet
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest

from operations.console.proving import proved_recently
from operations.console.single_sign_on import IdentityProvider
from operations.console.tries import count_try, remember_address


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """People are made by administrators."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Nobody signs themselves up."""
        return False

    def is_reauthentication_required(self, *, app: str, **kwargs: object) -> bool:
        """What one signs in with is changed only by who has just proved who they are."""
        return not proved_recently(context.request)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count the try, or refuse it."""
        self._login_failed_rl_usage = count_try(request, _name(credentials))
        if self._login_failed_rl_usage is None:
            raise self.validation_error("too_many_login_attempts")

    def authenticate(self, request: HttpRequest, **credentials: Any) -> AbstractBaseUser | None:
        """Where the right password came from is known from then on."""
        user: AbstractBaseUser | None = super().authenticate(request, **credentials)
        if user is not None:
            remember_address(request, _name(credentials))
        return user

    def add_message(
        self, request: HttpRequest, level: int, *args: object, **kwargs: object
    ) -> None:
        """The pages themselves show what has become of it."""


def _name(credentials: dict[str, Any]) -> str:
    return str(credentials.get("username", ""))


class SocialAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Whom the identity provider knows may come in. Without a role they see nothing."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: object) -> bool:
        """A person is made at the first sign-in."""
        return settings.RECONCILE.sign_in.oidc is not None

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: str | None = None
    ) -> Any:
        """The provider, asked as `single_sign_on` asks it."""
        found = super().get_provider(request, provider, client_id=client_id)
        found.oauth2_adapter_class = IdentityProvider
        return found


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
