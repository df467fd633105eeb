"""Signing in, with a form that was sent without a session kept on the way."""

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse

from operations.console.keeping import take_in


class SignIn(LoginView):
    """The sign-in page. Back to the page that somebody was on, with what they had typed."""

    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Take the kept form into the new session, and go to its page."""
        response = super().form_valid(form)
        copy = self.request.POST.get("kept", "")
        page = take_in(self.request, copy) if copy else ""
        if page:
            response["Location"] = page
        return response

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        """A copy stays with the form when the password was wrong."""
        context: dict[str, object] = super().get_context_data(**kwargs)
        return context | {"kept": _posted(self.request)}


def _posted(request: HttpRequest) -> str:
    return request.POST.get("kept", "")
