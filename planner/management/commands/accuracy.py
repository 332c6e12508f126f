"""Scores the planner against published boots: `python3 manage.py accuracy [PATHS...] [--json | --markdown]`."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand

from planner.accuracy.account import account
from planner.accuracy.document import accuracy_document
from planner.accuracy.text import as_text
from planner.core.errors import BadInput


class Command(BaseCommand):
    """Prints errors, interval coverage, exactness and refusals, beside a naive baseline."""

    help = "Score the planner against published boots: the catalog's own, or files of JSON lines."
    requires_system_checks: list[str] = []  # Django's own declaration; no database is needed

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare files and the form of the output."""
        parser.add_argument("paths", nargs="*", type=Path, help="boots as JSON lines (default: the catalog's boots)")
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="print everything as JSON")
        form.add_argument("--markdown", action="store_true", help="print docs/accuracy.md")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the account; exit 2 when a file is no file of boots."""
        try:
            found = account(options["paths"])
        except BadInput as fault:
            self.stderr.write(str(fault))
            sys.exit(2)
        if options["json"]:
            self.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
        elif options["markdown"]:
            self.stdout.write(accuracy_document(found), ending="")
        else:
            self.stdout.write(as_text(found, "How right the planner is, against published boots"))
