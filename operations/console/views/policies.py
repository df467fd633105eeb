"""What administrators allow beyond the default."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from operations.console.forms import PolicyForm
from operations.console.pages import answer
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import show_refusal
from operations.models import Policy, PolicyName
from operations.services.engine import default_engine
from operations.services.policies import PolicyRefused, set_policy


@require_http_methods(["GET", "HEAD", "POST"])
@allows(Act.POLICIES)
def policies(request: ConsoleRequest) -> HttpResponse:
    """Each policy as it stands, its history, and a form to change it."""
    form = PolicyForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                set_policy(
                    engine=default_engine(),
                    name=PolicyName.CLOSE_BY_ABSENCE,
                    enabled=form.cleaned_data["enabled"] == "on",
                    reason=form.cleaned_data["reason"],
                    actor=actor_of(request),
                )
                messages.success(request, _("The policy is recorded."))
                return redirect("policies")
            except PolicyRefused as refusal:
                show_refusal(form, refusal)
    context = {
        "form": form,
        "is_on": Policy.is_on(PolicyName.CLOSE_BY_ABSENCE),
        "history": Policy.objects.order_by("-id")[:50],
    }
    return answer(request, "operations/policies.html", context, status=status)
