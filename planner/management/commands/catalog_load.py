"""`python3 manage.py catalog_load`: bring the catalog's models and GPU types into the database; safe to repeat."""

from typing import Any

from django.core.management.base import BaseCommand

from planner.services import catalog_load


class Command(BaseCommand):
    help = "Load the catalog's models and GPU types; rows that people made are left alone. Safe to repeat."

    def handle(self, *, verbosity: int, **_: Any) -> None:
        loaded = catalog_load()
        if verbosity:
            for kind, counts in loaded.items():
                self.stdout.write(f"{kind.replace('_', ' ')}: {counts}")
