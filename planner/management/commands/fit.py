"""Makes the fitted constants anew from the catalog's boots: `python3 manage.py fit [--check]`."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from planner.accuracy.knowledge import make_fit
from planner.catalog.fitted import PATH, write_fit


class Command(BaseCommand):
    """Writes planner/catalog/fit.json; the same boots give the same file."""

    help = "Fit the measured memory terms to the catalog's boots and write planner/catalog/fit.json."
    requires_system_checks: list[str] = []  # Django's own declaration; no database is needed

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the dry run."""
        parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file is not current")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the fit, or compare with what is there."""
        content = write_fit(make_fit())
        if not options["check"]:
            PATH.write_bytes(content)
            self.stdout.write(f"Wrote {PATH.name}.")
        elif not PATH.exists() or PATH.read_bytes() != content:
            self.stderr.write(f"{PATH.name} is not what the boots give: run `python3 manage.py fit`.")
            sys.exit(1)
        else:
            self.stdout.write(f"{PATH.name} is current.")
