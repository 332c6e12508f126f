"""The scheduled chores; each task calls a service, or a command that exists already."""

from celery import shared_task
from django.core.management import call_command
from django.utils import timezone
from knox.models import get_token_model


@shared_task(name="profiling.forget_what_expired")
def forget_what_expired() -> None:
    """Delete sessions and API tokens past their end: they let nobody in, and pile up."""
    call_command("clearsessions")
    token = get_token_model()
    token.objects.filter(expiry__lt=timezone.now()).delete()
