"""`python3 manage.py token USER`: make an API token for a person or a machine, and print it this once."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from planner.accounts import MOST_TOKEN_DAYS, PERMISSIONS, token_create, user_add, user_named
from planner.core.errors import PlanningError


class Command(BaseCommand):
    help = "Make an API token and print it; it is kept only as a hash, so it cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER")
        parser.add_argument(
            "--days", type=int, default=90, help=f"how long it lives (default 90, at most {MOST_TOKEN_DAYS})"
        )
        parser.add_argument("--name", default="command line", help="what uses it, as the account page shows it")
        parser.add_argument(
            "--group", choices=[*PERMISSIONS, "admin"], help="make the account in this group if it is not there yet"
        )

    def handle(self, *, user: str, days: int, name: str, group: str | None, **_: Any) -> None:
        try:
            token, text = token_create(user=_account(user, group), name=name, days=days)
        except PlanningError as error:
            raise CommandError(str(error), returncode=2) from error
        self.stderr.write(f"Token {token.name!r} of {user}, until {token.expiry:%Y-%m-%d}. It is shown this once:")
        self.stdout.write(text)


def _account(name: str, group: str | None) -> User:
    if group and not User.objects.filter(username=name).exists():
        return user_add(name=name, group=group)
    return user_named(name)
