"""Errors in words: a page, a fragment where htmx asked, or data under `.json`; each says what to do next."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from planner.pages.answer import problem

NOT_FOUND_STEP = "Check the address, or start from a list."


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that Django itself refused."""
    return _told(
        request, 400, "That request cannot be read", "Its address or headers are malformed.", "Go back, try again."
    )


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A person without the permission; the exception says which one, where we raised it."""
    detail = str(exception) or "Your account may not do this."
    return _told(request, 403, "Not allowed", detail, "An administrator can change what your account may do.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """No such page or row."""
    return _told(request, 404, "Nothing is here", f"There is no {request.path}.", NOT_FOUND_STEP)


def server_error(request: HttpRequest) -> HttpResponse:
    """A fault of ours: the page must not need what may be broken."""
    detail = "The server's log holds the details. What you typed is still in the address."
    next_step = "Try again; if it stays, tell who runs this service."
    told = {"title": "Something broke on our side", "detail": detail, "next_step": next_step}
    if request.path.endswith(".json"):
        return problem(500, told["title"], detail, fix=next_step)
    return HttpResponse(render_to_string(_template(request), told), status=500)


def _told(request: HttpRequest, status: int, title: str, detail: str, next_step: str) -> HttpResponse:
    if request.path.endswith(".json"):
        return problem(status, title, detail, fix=next_step)
    told = {"title": title, "detail": detail, "next_step": next_step}
    return render(request, _template(request), told, status=status)


def _template(request: HttpRequest) -> str:
    return "planner/_error.html" if request.headers.get("HX-Request") == "true" else "planner/error.html"
