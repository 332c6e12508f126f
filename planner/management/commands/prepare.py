"""`manage.py prepare`: the database as this version needs it, and the catalog in it; safe to repeat."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Migrate the database and load the catalog; safe to repeat."

    def handle(self, **_options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        call_command("catalog_load", verbosity=0)
