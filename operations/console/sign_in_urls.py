"""Where people sign in and keep what they sign in with."""

from allauth.account import views as account
from allauth.mfa import urls as second_factor
from allauth.socialaccount import views as social
from allauth.usersessions import views as sessions
from django.contrib.auth import views as auth
from django.urls import URLPattern, URLResolver, include, path

from operations.console import single_sign_on
from operations.console.views.signing_in import SignIn, not_here

_sign_in, _sign_out = SignIn.as_view(), auth.LogoutView.as_view()

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", _sign_in, name="login"),
    path("logout/", _sign_out, name="logout"),
    # The same under the names that allauth knows.
    path("login/", _sign_in, name="account_login"),
    path("logout/", _sign_out, name="account_logout"),
    path("login/again/", account.reauthenticate, name="account_reauthenticate"),
    path("login/inactive/", account.account_inactive, name="account_inactive"),
    path("you/password/", account.password_change, name="account_change_password"),
    path("you/password/first/", account.password_set, name="account_set_password"),
    path("you/second-factor/", include(second_factor)),
    path("you/sessions/", sessions.list_usersessions, name="usersessions_list"),
    path("sso/oidc/<str:provider_id>/login/", single_sign_on.begin, name="openid_connect_login"),
    path(
        "sso/oidc/<str:provider_id>/login/callback/",
        single_sign_on.come_back,
        name="openid_connect_callback",
    ),
    path("sso/cancelled/", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("sso/error/", social.login_error, name="socialaccount_login_error"),
    path("sso/new/", not_here, name="socialaccount_signup"),
    path("sso/connections/", not_here, name="socialaccount_connections"),
    path("login/new/", not_here, name="account_signup"),
    path("login/forgotten/", not_here, name="account_reset_password"),
    path("you/email/", not_here, name="account_email"),
]
