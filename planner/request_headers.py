"""Headers that Django would trip over or misread, seen to before it sees them."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.utils.http import parse_header_parameters

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
LENGTH_REQUIRED = {
    "type": "about:blank",
    "title": "Length Required",
    "status": 411,
    "detail": "The body comes in chunks of unknown number.",
    "fix": "send a Content-Length header with it",
}


def with_checked_headers(application: Application) -> Application:
    """Drop a charset that is none, and refuse a body without a length."""

    def answered(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("HTTP_TRANSFER_ENCODING") and not environ.get("CONTENT_LENGTH"):
            # Django reads such a body as an empty one: the answer would be about fields that were sent.
            start_response("411 Length Required", [("Content-Type", "application/problem+json")])
            return [json.dumps(LENGTH_REQUIRED).encode()]
        _drop_strange_charset(environ)
        return application(environ, start_response)

    return answered


def _drop_strange_charset(environ: dict[str, Any]) -> None:
    """Django takes any codec for a charset, `base64` too, and fails before any view could answer."""
    media_type, parameters = parse_header_parameters(environ.get("CONTENT_TYPE", ""))
    if "charset" in parameters and not _is_of_text(parameters["charset"]):
        environ["CONTENT_TYPE"] = media_type


def _is_of_text(encoding: str) -> bool:
    try:
        return bool("a".encode(encoding))
    except (LookupError, UnicodeError, ValueError):
        return False
