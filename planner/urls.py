"""Every address of the service."""

from django.urls import include, path

urlpatterns = [
    path("api/", include("planner.api.urls")),
    path("", include("planner.pages.urls")),
]
