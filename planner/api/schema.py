"""What the OpenAPI schema says beyond what the views say themselves."""

from copy import deepcopy
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from planner.api.document_schema import document_components, ref
from planner.api.problems import MEDIA_TYPE

PROBLEM = {
    "type": "object",
    "description": "RFC 9457; `errors` names each field at fault and the fix.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "fix": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("field", "message", "fix")},
                "required": ["field", "message", "fix"],
            },
        },
    },
    "required": ["type", "title", "status", "detail"],
}
DOCUMENT = ref("Document")
_READING = {"list": "List them, a page at a time.", "retrieve": "Read one."}
_ALWAYS = {"401": "Nobody is signed in.", "403": "Not permitted, or no CSRF token with a session."}
_WITH_BODY = {
    "400": "Something in the body is wrong.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "429": "Too many requests.",
}


class TokenScheme(OpenApiAuthenticationExtension):
    """How a program signs in."""

    target_class = "planner.api.authentication.ApiTokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token ` followed by a token of your account page.",
        }


class Schema(AutoSchema):
    """Adds the errors that any operation may answer with, and a line that says what it is for."""

    def get_summary(self) -> str | None:
        """Return what DRF's own actions are for, or the first line of what another says of itself."""
        known = _READING.get(getattr(self.view, "action", ""))
        return known or self.get_description().partition("\n")[0] or None

    def _get_response_bodies(self, direction: str = "response") -> dict[str, Any]:
        said = super()._get_response_bodies(direction)
        return {**{status: _problem(text) for status, text in self._errors().items()}, **said}

    def _errors(self) -> dict[str, str]:
        errors = dict(_ALWAYS)
        if self.method in {"POST", "PATCH", "PUT"}:
            errors |= _WITH_BODY
        elif self._is_list_view():
            errors |= {"400": "A filter is misspelt or has no such value.", "404": "There is no such page."}
        if "{" in self.path:
            errors["404"] = "There is no such row."
        if self.method == "DELETE":
            errors |= {"400": "It cannot be removed.", "429": "Too many requests."}
        if self.path.endswith(("/plans", "/from-hub", "/sweep")) and self.method == "POST":
            errors["422"] = "There is no answer: what decides it is unknown."
        return errors


def _problem(description: str) -> dict[str, Any]:
    return {"description": description, "content": {MEDIA_TYPE: {"schema": ref("Problem")}}}


def with_shared_components(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the components that views refer to by name."""
    result["components"]["schemas"] |= {"Problem": deepcopy(PROBLEM), **document_components()}
    return result
