"""Addresses under `/api/`: the resources, the schema, and the page that shows both."""

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularAPIView
from rest_framework.routers import SimpleRouter

from planner.api import views
from planner.api.docs import DocumentationView

router = SimpleRouter(trailing_slash=False)
router.register("models", views.ModelViewSet)
router.register("gpu-types", views.GpuTypeViewSet)
router.register("hosts", views.HostViewSet)
router.register("plans", views.PlanViewSet)

v1 = [
    path("estimate", views.EstimateView.as_view(), name="api_estimate"),
    path("sweep", views.SweepView.as_view(), name="api_sweep"),
    path("me", views.MeView.as_view(), name="api_me"),
    path("schema", SpectacularAPIView.as_view(), name="api_schema"),
    *router.urls,
    re_path("", views.NoSuchAddress.as_view(), name="api_nothing"),
]
urlpatterns = [
    path("", DocumentationView.as_view(), name="api_docs"),
    path("v1/", include(v1)),
]
