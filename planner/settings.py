"""Everything that can be set, read from the environment (`NAME_FILE` names a file that holds the value)."""

import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from environ import FileAwareEnv

from planner import broker

BASE_DIR = Path(__file__).resolve().parent.parent
env = FileAwareEnv()


def secret_key_kept_in(home: Path) -> str:
    """The key made at first use and kept, readable by its owner alone."""
    path = home / "secret_key"
    try:
        if not path.exists():
            keep_new_secret(path)
        return path.read_text(encoding="ascii")
    except OSError:
        # Commands that keep nothing also run where nothing can be written; `up` refuses such a folder beforehand.
        return secrets.token_urlsafe(50)


def keep_new_secret(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(secrets.token_urlsafe(50), encoding="ascii")
    with suppress(FileExistsError):  # of processes that start together, the first one's key counts
        path.hardlink_to(draft)
    draft.unlink()


PLANNER_HOME = Path(env.str("PLANNER_HOME", default=str(BASE_DIR / "var"))).expanduser().resolve()
PLANNER_URL = env.str("PLANNER_URL", default="http://127.0.0.1:8000").rstrip("/")
SECRET_KEY = env.str("SECRET_KEY", default="") or secret_key_kept_in(PLANNER_HOME)
DEBUG = env.bool("DEBUG", default=False)
PUBLIC = urlsplit(PLANNER_URL)
ALLOWED_HOSTS = [
    PUBLIC.hostname or "localhost",
    "127.0.0.1",
    "localhost",
    "[::1]",
    *env.list("ALLOWED_HOSTS", default=[]),
]
CSRF_TRUSTED_ORIGINS = [PLANNER_URL]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "django_filters",
    "django_htmx",
    "template_partials",
    "auditlog",
    "csp",
    "planner",
    "profiling",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "auditlog.middleware.AuditlogMiddleware",
]
ROOT_URLCONF = "planner.urls"
WSGI_APPLICATION = "planner.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,  # template_partials wraps the loaders, so `page.html#part` works
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASE_URL = env.str("DATABASE_URL", default=f"sqlite:///{PLANNER_HOME / 'planner.sqlite3'}")
if not DATABASE_URL.startswith(("postgres://", "postgresql://", "sqlite://")):
    raise ImproperlyConfigured("DATABASE_URL must start with postgres:// or sqlite://")
DATABASES = {"default": env.db_url_config(DATABASE_URL)}
if DATABASE_URL.startswith("sqlite"):
    DATABASES["default"].setdefault("OPTIONS", {}).update(
        timeout=20,
        transaction_mode="IMMEDIATE",  # web and worker write: take the write lock first, never upgrade to it
        init_command="PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    )
else:
    DATABASES["default"].setdefault("OPTIONS", {}).setdefault("connect_timeout", 5)
DATABASES["default"] |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": not DATABASE_URL.startswith("sqlite")}

REDIS_URL = env.str("REDIS_URL", default="") or broker.socket_url(PLANNER_HOME)
CELERY_BROKER_URL = broker.celery_url(REDIS_URL)

AUTHENTICATION_BACKENDS = ["planner.backend.OneQueryBackend"]
LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = LOGIN_URL
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC.scheme == "https"
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "planner_session", "planner_csrf"
SECURE_HSTS_SECONDS = 31_536_000 if PUBLIC.scheme == "https" else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

KNOX_TOKEN_MODEL = "planner.ApiToken"
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "planner.api.authentication.ApiTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["planner.api.permissions.ModelPermissions"],  # signed in, and allowed: reading too
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["planner.api.parsers.StrictJsonParser"],
    "DEFAULT_FILTER_BACKENDS": ["planner.api.filtering.StrictFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "planner.api.pagination.Pages",
    "DEFAULT_SCHEMA_CLASS": "planner.api.schema.Schema",
    "DEFAULT_THROTTLE_CLASSES": ["planner.api.throttles.ScopedCountThrottle"],
    "DEFAULT_THROTTLE_RATES": {"estimate": "12000/min", "write": "120/min", "run": "30/min"},
    "EXCEPTION_HANDLER": "planner.api.problems.problem_response",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "vLLM Planner",
    "DESCRIPTION": "Plans vLLM deployments: memory, capacity and refusals, each number with its evidence.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "validatorUrl": None, "displayRequestDuration": True},
    "COMPONENT_SPLIT_REQUEST": True,
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [
        "planner.api.schema.with_shared_components",
        "drf_spectacular.hooks.postprocess_schema_enums",
    ],
}

FILTERS_EMPTY_CHOICE_LABEL = "all"

STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True  # served straight from the packages: nothing to collect, nothing to go stale

USE_TZ = True
TIME_ZONE = env.str("TZ", default="UTC")
LANGUAGE_CODE = "en-us"
USE_THOUSAND_SEPARATOR = False
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler", "stream": sys.stderr}},
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", default="INFO")},
}
