"""Every address of the service."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from planner import health, sign_in

urlpatterns = [
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
    path("accounts/link/<token>/", sign_in.follow_link, name="sign_in_link"),
    path("accounts/login/", auth.LoginView.as_view(), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("api/", include("planner.api.urls")),
    path("", include("planner.pages.urls")),
]
handler400 = "planner.pages.errors.bad_request"
handler403 = "planner.pages.errors.permission_denied"
handler404 = "planner.pages.errors.not_found"
handler500 = "planner.pages.errors.server_error"
