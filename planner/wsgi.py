"""The web process's entry point (`gunicorn planner.wsgi`)."""

import os

from django.core.wsgi import get_wsgi_application

from planner.request_headers import with_checked_headers

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "planner.settings")
application = with_checked_headers(get_wsgi_application())
