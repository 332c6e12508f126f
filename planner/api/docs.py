"""The page at `/api/` where the API can be read and tried."""

from django.contrib.auth.views import redirect_to_login
from django.http import HttpResponse
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.exceptions import NotAuthenticated


class DocumentationView(SpectacularSwaggerSplitView):
    """Swagger UI from our own host, its script apart from its page: the content security policy stays strict."""

    url_name = "api_schema"
    template_name = "planner/api_docs.html"

    def handle_exception(self, exc: Exception) -> HttpResponse:
        """A person, not a program, opens this: show the way in."""
        if isinstance(exc, NotAuthenticated):
            return redirect_to_login(self.request.get_full_path())
        return super().handle_exception(exc)
