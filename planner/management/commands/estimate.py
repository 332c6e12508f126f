"""`python3 manage.py estimate ... -- vllm serve MODEL ...`: see `planner.estimate_command`."""

import sys

from django.core.management.base import BaseCommand, CommandParser

from planner.estimate_command import HELP, add_options, main


class Command(BaseCommand):
    help = HELP
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        add_options(parser)

    def run_from_argv(self, argv: list[str]) -> None:
        """Exit codes are this command's contract, so it reads its own words and ends the process itself."""
        sys.exit(main(argv[2:]))
