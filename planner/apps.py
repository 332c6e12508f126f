"""The planner's Django application."""

from django.apps import AppConfig


class PlannerConfig(AppConfig):
    name = "planner"
    verbose_name = "Planner"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Follow the rows that the audit log keeps."""
        from planner.audit import register_rows  # models can be imported only once every application is loaded

        register_rows()
