"""The page at `/api/` where the API can be read and tried."""

from drf_spectacular.views import SpectacularSwaggerSplitView


class DocumentationView(SpectacularSwaggerSplitView):
    """Swagger UI from our own host, its script apart from its page: the content security policy stays strict."""

    url_name = "api_schema"
    template_name = "planner/api_docs.html"
