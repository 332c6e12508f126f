"""Errors as `application/problem+json` (RFC 9457): each names the field and the fix."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import exception_handler

from planner.core.errors import PlanningError, Unknown
from planner.faults import BadInputs, fix_for

MEDIA_TYPE = "application/problem+json"
_FIXES = {
    401: "sign in, or send `Authorization: Token …` with a token made on /account",
    403: "ask an admin to put your account in a group that may do this",
    404: "check the address; lists are at /api/v1/models, gpu-types, hosts and plans",
    405: "use a method that the Allow header names",
    406: "accept application/json",
    413: "send less at a time",
    415: "send JSON with `Content-Type: application/json`",
    422: "supply what is unknown",
    429: "wait as many seconds as the Retry-After header says",
}


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return the answer to an error, or None for a fault of our own, which is not theirs to fix."""
    if isinstance(error, PlanningError):
        return _response(422 if isinstance(error, Unknown) else 400, [_entry(fault) for fault in _faults(error)])
    if isinstance(error, exceptions.ValidationError):
        return _response(400, list(_flat(error.get_full_details())))
    known = exception_handler(error, context)
    return known and _plain(known, _said(error))


def _said(error: Exception) -> str:
    if isinstance(error, Http404):
        return "There is nothing at this address."
    if isinstance(error, PermissionDenied):
        return "Your account may not do this."
    return str(getattr(error, "detail", error))


def _plain(known: Response, detail: str) -> Response:
    answer = _problem(known.status_code, detail, fix=_FIXES.get(known.status_code, "correct the request"))
    for name in ("WWW-Authenticate", "Retry-After"):
        if name in known.headers:
            answer[name] = known.headers[name]
    return answer


def _faults(error: PlanningError) -> tuple[PlanningError, ...]:
    return error.faults if isinstance(error, BadInputs) else (error,)


def _entry(fault: PlanningError) -> dict[str, str]:
    return {"field": fault.field, "message": fault.message, "fix": fault.fix}


def _flat(details: Any, path: str = "") -> Iterator[dict[str, str]]:
    """DRF nests its details as the body is nested; a fault is at the end of each path."""
    if _is_fault(details):
        yield {"field": path, "message": str(details["message"]), "fix": fix_for(details["code"])}
    elif isinstance(details, Mapping):
        for name, inner in details.items():
            yield from _flat(inner, _joined(path, name))
    elif all(_is_fault(inner) for inner in details):
        for inner in details:
            yield from _flat(inner, path)
    else:
        for index, inner in enumerate(details):
            yield from _flat(inner, _joined(path, index))


def _is_fault(details: Any) -> bool:
    return isinstance(details, Mapping) and set(details) == {"message", "code"} and isinstance(details["code"], str)


def _joined(path: str, name: str | int) -> str:
    if isinstance(name, int):
        return f"{path}[{name}]"
    if name == api_settings.NON_FIELD_ERRORS_KEY:
        return path
    return f"{path}.{name}" if path else name


def _response(status: int, errors: list[dict[str, str]]) -> Response:
    first = errors[0]
    detail = f"{first['field']}: {first['message']}" if first["field"] else first["message"]
    return _problem(status, detail, errors=errors)


def _problem(status: int, detail: str, **more: object) -> Response:
    title = HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return Response(body, status=status, content_type=MEDIA_TYPE)
