"""How every page answers: one dictionary, drawn by a template or, under the same address with `.json`, as data."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import URLPattern, path

from planner.core.errors import PlanningError

View = Callable[..., HttpResponse]


class SignedInRequest(HttpRequest):
    """A request as every page gets it: the middleware lets nobody else through."""

    user: User


GROUPS_SENTENCE = "Viewers read; planners also save plans and add models; operators also add GPU types and hosts."


def page(route: str, view: View, name: str) -> list[URLPattern]:
    """Return the two addresses of a page: as a page, and as data."""
    return [path(f"{route}.json", as_data(view), name=f"{name}_json"), path(route, view, name=name)]


def answer(
    request: HttpRequest,
    template: str,
    data: Mapping[str, Any],
    *,
    as_json: bool,
    status: int = 200,
    drawn_with: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Return `data` as JSON, or drawn; `drawn_with` adds what only a page needs (forms, pagers)."""
    if as_json:
        return JsonResponse(data, status=status, json_dumps_params={"indent": 2})
    return render(request, template, {**data, **(drawn_with or {})}, status=status)


def problem(status: int, title: str, detail: str, **more: str) -> HttpResponse:
    """Return an error as data (RFC 9457)."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return JsonResponse(body, status=status, content_type="application/problem+json")


def as_data(view: View) -> View:
    """Return the view under `.json`: its errors are data too."""

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, as_json=True, **kwargs)
        except PermissionDenied as denied:
            return problem(403, "Not allowed", str(denied))
        except Http404 as missing:
            return problem(404, "Not found", str(missing))
        except PlanningError as fault:
            return problem(400, "Bad request", str(fault), field=fault.field, fix=fault.fix)

    return answered


def permitted(permission: str, *, act: str) -> Callable[[View], View]:
    """Refuse people without the permission, in words that say what is missing and who can give it."""

    def guard(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not request.user.has_perm(permission):
                raise PermissionDenied(
                    f"Your account may not {act}. {GROUPS_SENTENCE} An administrator can put you in a group."
                )
            return view(request, *args, **kwargs)

        return guarded

    return guard
