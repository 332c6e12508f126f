"""What all lists share: a page of rows, as many as a screen holds, and the same as data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

ROWS_A_PAGE = 50

Row = Mapping[str, Any]


def page_of(request: HttpRequest, rows: QuerySet[Any] | Sequence[Any]) -> Page[Any]:
    """Return the page that the address asks for; beyond the ends, the nearest there is."""
    return Paginator(rows, ROWS_A_PAGE).get_page(request.GET.get("page"))


def listed(page: Page[Any], as_row: Callable[[Any], Row]) -> dict[str, Any]:
    """Return the rows of a page as data, with where they stand among all."""
    return {
        "count": page.paginator.count,
        "page": page.number,
        "pages": page.paginator.num_pages,
        "results": [as_row(row) for row in page],
    }
