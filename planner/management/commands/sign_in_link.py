"""`manage.py sign_in_link [USER]`: a link that signs one person in, once, within the hour."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from planner import accounts, sign_in
from planner.core.errors import BadInput


class Command(BaseCommand):
    help = "Print a link that signs a person in, once, within the hour (by default the first admin)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", nargs="?", help="whom the link signs in")

    def handle(self, *, user: str | None, **_options: Any) -> None:
        try:
            person = accounts.user_named(user) if user else sign_in.first_admin()
        except BadInput as error:
            raise CommandError(str(error)) from error
        if person is None:
            raise CommandError("Nobody is in the group admin: name a user.")
        self.stdout.write(sign_in.link_for(person, address=settings.PLANNER_URL))
