"""Every address of the site."""

from importlib.util import find_spec

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from operations.console.views.signing_in import SignIn
from reconcile import health

handler500 = "reconcile.errors.answer_error"

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("login/", SignIn.as_view(), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
]
if find_spec("operations.urls"):
    urlpatterns.append(path("", include("operations.urls")))
