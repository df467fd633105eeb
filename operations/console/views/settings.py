"""A person's own settings."""

from django.contrib import messages
from django.forms.models import model_to_dict
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.settings_form import SettingsForm
from operations.models import UserSettings
from operations.services.engine import default_engine
from operations.services.preferring import save_settings


@require_http_methods(["GET", "HEAD", "POST"])
@allows(Act.READ, narrows=True)
def own_settings(request: ConsoleRequest) -> HttpResponse:
    """Time zone, language, colours, keys and density: for whoever is signed in."""
    kept = UserSettings.objects.filter(user=request.user).first() or UserSettings()
    if request.method != "POST":
        form = SettingsForm(initial=model_to_dict(kept))
        return answer(request, "operations/settings.html", {"form": form})
    form = SettingsForm(request.POST)
    if not form.is_valid():
        return answer(request, "operations/settings.html", {"form": form}, status=422)
    save_settings(
        engine=default_engine(), user=request.user, wanted=form.wanted(), actor=actor_of(request)
    )
    messages.success(request, _("Your settings are kept."))
    return redirect("settings")
