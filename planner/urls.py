"""Every address of the service."""

from django.urls import include, path

urlpatterns = [
    path("api/", include("planner.api.urls")),
    path("", include("planner.pages.urls")),
]
handler400 = "planner.pages.errors.bad_request"
handler403 = "planner.pages.errors.permission_denied"
handler404 = "planner.pages.errors.not_found"
handler500 = "planner.pages.errors.server_error"
