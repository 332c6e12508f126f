"""`python3 manage.py estimate ... -- vllm serve MODEL ...`: see `planner.estimate_command`."""

import sys

from django.core.management.base import BaseCommand

from planner.estimate_command import HELP, main, options_parser


class Command(BaseCommand):
    """Named here so that Django lists it; `manage.py` runs it before Django is loaded."""

    help = HELP

    def print_help(self, prog_name: str, subcommand: str) -> None:
        """Show the command's own options; Django's have no place in it."""
        options_parser().print_help()

    def run_from_argv(self, argv: list[str]) -> None:
        """Exit codes are this command's contract, so it reads its own words and ends the process itself."""
        sys.exit(main(argv[2:]))
