"""The ways in over HTTP."""

from django.urls import URLPattern, URLResolver, include, path

from operations.api.metrics import metrics
from operations.api.routes import api
from operations.webhooks.views import stripe_webhook

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", api.urls),
    path("metrics", metrics, name="metrics"),
    path("webhooks/stripe/", stripe_webhook, name="stripe-webhook"),
    path("webhooks/stripe/<str:account>/", stripe_webhook, name="stripe-webhook-account"),
    path("", include("operations.console.urls")),
]
