"""Keeping the list that one sees under a name, and letting a kept one go."""

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from operations.console.filters import read_filters
from operations.console.permissions import Act, ConsoleRequest, actor_of, allows
from operations.console.saying import in_words
from operations.console.views.queue import query_of, view_of
from operations.queries.choices import choices
from operations.queries.stretches import order_of
from operations.services import saving_views
from operations.services.engine import default_engine
from operations.services.saving_views import ViewRefused


@require_POST
@allows(Act.READ, narrows=True)
def save(request: ConsoleRequest) -> HttpResponse:
    """Keep a list for oneself or, by who may, for everybody."""
    engine = default_engine()
    address = QueryDict(request.POST.get("address", "")[:2_000])
    view = view_of(address.get("view", ""))
    offered = choices(engine.clock(), request.accounts)
    filters = read_filters(address, choices=offered, person=str(request.user.pk))
    query = query_of(view, order_of(view, address.get("sort", "")), filters.understood)
    try:
        kept = saving_views.save_view(
            engine=engine,
            name=request.POST.get("name", ""),
            query=query,
            shared=bool(request.POST.get("shared")),
            may_share=Act.APPROVE in request.rights.everywhere,
            actor=actor_of(request),
        )
    except ViewRefused as refusal:
        messages.error(request, in_words(refusal.sentence))
        return redirect(f"{reverse('queue')}?{query}")
    messages.success(request, _("The view is kept."))
    return redirect(f"{reverse('queue')}?{kept.query}&saved={kept.pk}")


@require_POST
@allows(Act.READ, narrows=True)
def remove(request: ConsoleRequest, view_id: int) -> HttpResponse:
    """Let a kept view go; the operations in it are not touched."""
    try:
        saving_views.remove_view(
            engine=default_engine(),
            view_id=view_id,
            may_share=Act.APPROVE in request.rights.everywhere,
            actor=actor_of(request),
        )
        messages.success(request, _("The view is removed."))
    except ViewRefused as refusal:
        messages.error(request, in_words(refusal.sentence))
    return redirect("queue")
