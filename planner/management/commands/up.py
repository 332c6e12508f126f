"""`manage.py up`: the whole service on one machine, until Ctrl-C."""

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from planner import parts, sign_in, this_machine
from planner.processes import Part, Service, Stopped, stop_on_signals


class Command(BaseCommand):
    help = "Start broker, web, worker and scheduler, and print the address with a sign-in link. Ctrl-C stops all."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (0.0.0.0: all of them)")
        parser.add_argument("--port", type=int, default=8000, help="the port to listen on")

    def handle(self, *, host: str, port: int, **_options: Any) -> None:
        os.umask(0o077)  # what the parts keep is for this user alone
        lock = this_machine.hold(settings.PLANNER_HOME)
        this_machine.require_port(host, port)
        stop_on_signals()
        environment = parts.environment(host, port)
        service = Service(logs=settings.PLANNER_HOME / "logs", environment=environment, lock=lock)
        try:
            self.start(service, host, port)
            self.announce(environment["PLANNER_URL"])
            code = self.explain(service.wait_for_an_end())
        except parts.PartEnded as end:
            code = self.explain(end.part)
        except Stopped:
            code = 0
            self.stderr.write("Stopping ...")
        finally:
            service.stop()
        sys.exit(code)

    def start(self, service: Service, host: str, port: int) -> None:
        this_machine.require_database()
        if not os.environ.get("REDIS_URL"):
            parts.start_broker(service)
        this_machine.require_broker()
        call_command("prepare")
        parts.start_web(service, host, port)
        parts.start_worker(service)
        parts.wait_until(lambda: parts.web_answers(host, port), service)
        parts.start_beat(service)  # nothing is due in the first seconds, which belong to whoever waits for the page

    def announce(self, address: str) -> None:
        self.stdout.write(f"vLLM Planner runs at {address} (Ctrl-C stops it; data and logs: {settings.PLANNER_HOME})")
        admin = sign_in.first_admin()
        if admin is not None:
            link = sign_in.link_for(admin, address=address)
            self.stdout.write(f"Sign in as {admin.get_username()} (once, within the hour): {link}")
        self.stdout.flush()

    def explain(self, part: Part) -> int:
        code = part.guard.wait()
        self.stderr.write(f"{part.name} ended with code {code}, so all is stopped. The end of {part.log}:")
        self.stderr.write(part.last_lines())
        return code
