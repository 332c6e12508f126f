#!/usr/bin/env python3
"""Django's command line, which first makes a bare machine ready: only Python itself is needed."""

import os
import sys

if sys.version_info < (3, 11):
    sys.exit(
        "vLLM Planner needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Run: python3.11 manage.py"
    )

if os.name != "posix":
    sys.exit("vLLM Planner runs on Linux and macOS; on Windows use it inside WSL.")

from planner import bootstrap


def main():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "planner.settings")
    bootstrap.make_ready(sys.argv)
    if sys.argv[1:2] == ["estimate"]:  # needs neither Django nor its settings, and answers sooner without them
        from planner.estimate_command import main as estimate

        sys.exit(estimate(sys.argv[2:]))
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit("The settings cannot be used: " + str(error))


if __name__ == "__main__":
    main()
