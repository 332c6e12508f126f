"""`manage.py worker`: take the tasks of one host, by default of this machine (queue `host.local`)."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

# Tasks wait for other processes, so threads do; a forked pool would fork whatever holds a GPU open.
POOL = ("--pool", "threads", "--concurrency", "4")
ALONE = ("--without-gossip", "--without-mingle")


class Command(BaseCommand):
    help = "Run the tasks of one host: its own queue, one process, threads."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="local", help="the host's name here; its queue is host.NAME")

    def handle(self, *, host: str, **_options: Any) -> None:
        name = ("--queues", f"host.{host}", "--hostname", f"{host}@%h")
        celery = [sys.executable, "-m", "celery", "--app", "profiling", "worker", *POOL, *ALONE, *name]
        os.execv(sys.executable, [*celery, "--loglevel", "INFO"])
