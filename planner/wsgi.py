"""The web process's entry point (`gunicorn planner.wsgi`)."""

import os

from django.core.wsgi import get_wsgi_application

from planner.charset import with_text_charset

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "planner.settings")
application = with_text_charset(get_wsgi_application())
