"""The profiling Django application."""

from django.apps import AppConfig


class ProfilingConfig(AppConfig):
    name = "profiling"
    verbose_name = "Profiling"
    default_auto_field = "django.db.models.BigAutoField"
