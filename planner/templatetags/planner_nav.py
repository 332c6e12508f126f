"""The links at the head of every page, with the one that is open marked."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.urls import reverse

register = template.Library()

LINKS = {
    "workbench": "Plan",
    "plans": "Plans",
    "models": "Models",
    "gpu_types": "GPUs",
    "hosts": "Hosts",
    "techniques": "Techniques",
}


@register.inclusion_tag("planner/_nav.html", takes_context=True)
def navigation(context: Mapping[str, Any]) -> dict[str, Any]:
    """Every section; the current one is that with the longest address above the page's own."""
    request = context.get("request")
    path = request.path.removesuffix(".json") if request else ""
    addresses = {reverse(name): label for name, label in LINKS.items()}
    above = [url for url in addresses if path == url or path.startswith(f"{url}/")]
    current = max(above, key=len, default="")
    return {"links": [(url, label, url == current) for url, label in addresses.items()]}
