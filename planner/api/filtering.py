"""Query parameters of lists: a misspelt one is told, for the list without it would be a wrong answer."""

from difflib import get_close_matches

from django_filters.rest_framework import DjangoFilterBackend

from planner.core.errors import BadInput
from planner.faults import BadInputs

READ_ELSEWHERE = ("page", "page_size", "format")


class StrictFilterBackend(DjangoFilterBackend):
    """Refuses parameters that no filter reads."""

    def filter_queryset(self, request, queryset, view):
        filters = getattr(view, "filterset_class", None)
        known = [*filters.base_filters, *READ_ELSEWHERE] if filters else list(request.query_params)
        if faults := [_unknown(name, known) for name in request.query_params if name not in known]:
            raise BadInputs(faults)
        return super().filter_queryset(request, queryset, view)


def _unknown(name: str, known: list[str]) -> BadInput:
    near = get_close_matches(name, known, n=1)
    fix = f"did you mean {near[0]}?" if near else f"use {', '.join(known)}"
    return BadInput(field=name[:100], message="no filter has this name.", fix=fix)
