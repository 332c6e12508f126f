"""The Celery application: one queue a host, JSON only, and no result backend, because the row is the result."""

import os

from celery import Celery
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "planner.settings")

SIX_HOURS = 6 * 60 * 60
ONE_DAY = 24 * 60 * 60

app = Celery("profiling")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    accept_content=["json"],
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    # Longer than any run: at the default of one hour a long run would be delivered twice.
    broker_transport_options={"visibility_timeout": SIX_HOURS},
    broker_connection_retry_on_startup=True,
    task_default_queue="host.local",
    beat_schedule_filename=str(settings.PLANNER_HOME / "beat-schedule"),
    beat_schedule={
        "forget-what-expired": {"task": "profiling.forget_what_expired", "schedule": ONE_DAY},
    },
)
app.autodiscover_tasks()
