"""Is the service alive (`/healthz`), and can it work (`/readyz`)? For load balancers, containers and `up` itself."""

from collections.abc import Callable

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

SECONDS_TO_ANSWER = 3


def check_database() -> None:
    """Ask the database for one row; DatabaseError says what is wrong."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def check_broker() -> None:
    """Ask the broker for an answer; redis.RedisError or ValueError (a malformed address) says what is wrong."""
    with redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=SECONDS_TO_ANSWER, socket_timeout=SECONDS_TO_ANSWER
    ) as client:
        client.ping()


CHECKS: dict[str, Callable[[], None]] = {"database": check_database, "broker": check_broker}


def state_of(check: Callable[[], None]) -> str:
    """`ok`, or the kind of failure: the words of a driver may hold a host or a name that a stranger need not know."""
    try:
        check()
    except (DatabaseError, redis.RedisError, ValueError) as error:
        return type(error).__name__
    return "ok"


@never_cache
@login_not_required
def alive(_request: HttpRequest) -> JsonResponse:
    """The web process answers."""
    return JsonResponse({"status": "ok"})


@never_cache
@login_not_required
def ready(_request: HttpRequest) -> JsonResponse:
    """The database and the broker answer too; 503 where one does not."""
    states = {name: state_of(check) for name, check in CHECKS.items()}
    works = all(state == "ok" for state in states.values())
    return JsonResponse({"status": "ok" if works else "failing", **states}, status=200 if works else 503)
