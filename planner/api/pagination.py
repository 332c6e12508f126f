"""Lists in pages."""

from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request

from planner.core.errors import BadInput


class Pages(PageNumberPagination):
    """Fifty a page, or as many as asked for up to two hundred."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200

    def get_page_size(self, request: Request) -> int:
        """Return the size asked for; one that cannot be given is told, where DRF would take its own."""
        asked = request.query_params.get(self.page_size_query_param)
        if asked is None:
            return self.page_size
        if not (asked.isascii() and asked.isdecimal() and len(asked) < 9 and 1 <= int(asked) <= self.max_page_size):
            limits = f"from 1 to {self.max_page_size}"
            raise BadInput(field="page_size", message=f"a page has {limits} rows.", fix=f"give a number {limits}")
        return int(asked)
