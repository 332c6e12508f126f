"""A charset in a Content-Type header that names no text encoding, such as `base64`, is not one to read with."""

from collections.abc import Callable, Iterable
from typing import Any

from django.utils.http import parse_header_parameters

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def with_text_charset(application: Application) -> Application:
    """Drop such a charset before Django sees it: it takes any codec for one, and fails before any view could answer."""

    def answered(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        media_type, parameters = parse_header_parameters(environ.get("CONTENT_TYPE", ""))
        if "charset" in parameters and not _is_of_text(parameters["charset"]):
            environ["CONTENT_TYPE"] = media_type
        return application(environ, start_response)

    return answered


def _is_of_text(encoding: str) -> bool:
    try:
        return bool("a".encode(encoding))
    except (LookupError, UnicodeError, ValueError):
        return False
