"""Every address of the site."""

from importlib.util import find_spec

from django.contrib import admin
from django.urls import include, path

from reconcile import health

handler500 = "reconcile.errors.answer_error"

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("", include("operations.console.sign_in_urls")),
    path("admin/", admin.site.urls),
]
if find_spec("operations.urls"):
    urlpatterns.append(path("", include("operations.urls")))
