"""What all lists share: a page of rows, as many as a screen holds, and the same as data."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django_filters import FilterSet

from planner.core.errors import BadInput
from planner.names import unknown_name

ROWS_A_PAGE = 50

Row = Mapping[str, Any]


def page_of(request: HttpRequest, rows: QuerySet[Any] | Sequence[Any]) -> Page[Any]:
    """Return the page that the address asks for; beyond the ends, the nearest there is."""
    return Paginator(rows, ROWS_A_PAGE).get_page(request.GET.get("page"))


def refuse_misread(narrowed: FilterSet, query: QueryDict, *, besides: Collection[str] = ()) -> None:
    """Raise for a parameter that no filter reads, or cannot: as data, a list without it would be a wrong answer.

    `besides` are parameters that the page itself reads.
    """
    known = [*narrowed.filters, *besides, "page"]
    for name in query:
        if name not in known:
            raise unknown_name("filter", name, known)
    for name, messages in narrowed.errors.items():
        if name not in besides:
            raise BadInput(field=name, message=str(messages[0]), fix="correct it, or leave it out")


def listed(page: Page[Any], as_row: Callable[[Any], Row]) -> dict[str, Any]:
    """Return the rows of a page as data, with where they stand among all."""
    return {
        "count": page.paginator.count,
        "page": page.number,
        "pages": page.paginator.num_pages,
        "results": [as_row(row) for row in page],
    }
