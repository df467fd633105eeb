"""Signing in, with a form that was sent without a session kept on the way."""

from typing import Any

from allauth.account.forms import LoginForm
from allauth.account.views import LoginView
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse

from operations.console.keeping import take_in


class SignIn(LoginView):  # type: ignore[misc]
    """The sign-in page. Back to the page that somebody was on, with what they had typed."""

    template_name = "registration/login.html"

    def get_form_kwargs(self) -> dict[str, Any]:
        """The name stands in a field that is called so."""
        kwargs: dict[str, Any] = super().get_form_kwargs()
        if "data" in kwargs:
            kwargs["data"] = kwargs["data"].copy()
            kwargs["data"]["login"] = kwargs["data"].get("username", "")
        return kwargs

    def form_valid(self, form: LoginForm) -> HttpResponse:
        """Take the kept form into the session, and go to its page, if need be by a second step."""
        copy = self.request.POST.get("kept", "")
        self._page = take_in(self.request, copy) if copy else ""
        response: HttpResponse = super().form_valid(form)
        return response

    def get_success_url(self) -> str:
        """The page of the kept form, the page that was asked for, or the queue."""
        kept: str = getattr(self, "_page", "")
        return kept or super().get_success_url() or settings.LOGIN_REDIRECT_URL

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A copy stays with the form when the password was wrong."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        wrong = context["form"].non_field_errors().as_data()
        return context | {
            "kept": self.request.POST.get("kept", ""),
            "next": self.request.POST.get("next") or self.request.GET.get("next", ""),
            "typed_name": self.request.POST.get("username", ""),
            "too_many": any(error.code == "too_many_login_attempts" for error in wrong),
            "oidc": settings.RECONCILE.sign_in.oidc,
        }


def not_here(request: HttpRequest) -> HttpResponse:
    """What allauth could do and we don't: signing up, and letters by mail."""
    raise Http404
