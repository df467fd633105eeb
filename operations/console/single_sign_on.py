"""What is asked of an identity provider's word before anybody is let in by it.

allauth checks the state and proves the code's owner (PKCE); who vouches is checked here: the issuer
that was configured, by its signature, for us, for this sign-in, and for the person it then tells of
(OpenID Connect Core 1.0, 3.1.3.7 and 5.3.2; Discovery 1.0, 4.3).
"""

from typing import Any

import jwt
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.client import OAuth2Client, OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare, salted_hmac
from requests import RequestException

#: Signatures that only the provider can make. A shared secret's are not among them.
_ALGORITHMS = [
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
]
#: How far its clock may be from ours, in seconds.
_LEEWAY_S = 60
_NEEDED = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")


def _nonce(state: str) -> str:
    """What a token must carry that was made for this sign-in; its state is the session's, once."""
    return salted_hmac("oidc-nonce", state, algorithm="sha256").hexdigest()


class _Client(OAuth2Client):  # type: ignore[misc]
    def get_redirect_url(self, authorization_url: str, scope: Any, extra_params: Any) -> str:
        """With the nonce."""
        params = {**extra_params, "nonce": _nonce(self.state)}
        return str(super().get_redirect_url(authorization_url, scope, params))


class IdentityProvider(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """The provider, of which nothing is believed that it did not sign."""

    client_class = _Client

    @property
    def openid_config(self) -> dict[str, Any]:
        """What it says of itself. Raises OAuth2Error when that can't be read or is another's."""
        try:
            found: dict[str, Any] = super().openid_config
        except RequestException as error:
            raise OAuth2Error("The identity provider can't be read.") from error
        oidc = settings.RECONCILE.sign_in.oidc
        issuer = str(found.get("issuer", "")).rstrip("/")
        if oidc is None or issuer != oidc.issuer or any(name not in found for name in _NEEDED):
            raise OAuth2Error("What was found is not the issuer's.")
        return found

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any
    ) -> Any:
        """Who it is. Raises OAuth2Error."""
        claims = self._verified(app, kwargs["response"].get("id_token"))
        if not constant_time_compare(
            str(claims.get("nonce", "")), _nonce(request.GET.get("state", ""))
        ):
            raise OAuth2Error("The token was made for another sign-in.")
        person = self._fetch_user_info(token.token)
        if person.get("sub") != claims["sub"]:
            raise OAuth2Error("The provider tells of another person than it signed for.")
        data = {"userinfo": person, "id_token": claims}
        return self.get_provider().sociallogin_from_response(request, data)

    def _verified(self, app: SocialApp, id_token: object) -> dict[str, Any]:
        if not isinstance(id_token, str):
            raise OAuth2Error("There is no token of the person.")
        with get_adapter().get_requests_session() as session:
            response = session.get(self.openid_config["jwks_uri"])
            response.raise_for_status()
            keys = response.json()
        try:
            named = jwt.get_unverified_header(id_token).get("kid")
            known = jwt.PyJWKSet.from_dict(keys).keys
            fitting = [key for key in known if named is None or key.key_id == named]
            if len(fitting) != 1:
                raise OAuth2Error("It is signed with a key that is not the issuer's.")
            claims: dict[str, Any] = jwt.decode(
                id_token,
                key=fitting[0],
                algorithms=_ALGORITHMS,
                audience=app.client_id,
                issuer=self.openid_config["issuer"],
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise OAuth2Error("The token does not hold.") from error
        if claims.get("azp", app.client_id) != app.client_id:
            raise OAuth2Error("The token was made for another client.")
        return claims


def begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Off to the provider."""
    return _answer(request, provider_id, OAuth2LoginView)


def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Back from it, let in or not."""
    return _answer(request, provider_id, OAuth2CallbackView)


def _answer(request: HttpRequest, provider_id: str, view: Any) -> HttpResponse:
    provider = IdentityProvider(request, provider_id)
    try:
        response: HttpResponse = view.adapter_view(provider)(request)
    except SocialApp.DoesNotExist as error:
        raise Http404 from error
    except OAuth2Error as error:
        response = render_authentication_error(request, provider.get_provider(), exception=error)
    return response
