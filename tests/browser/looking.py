"""What a test sees of a page beyond its words: whom it shuts out, and whether it reaches beyond the window."""

from pathlib import Path

AXE = Path(__file__).parents[1] / "fixtures/vendor/axe-core/axe-4.14.1.min.js"


def serious_faults(page):
    """What axe-core finds on this page: rule and elements of each violation, moderate and minor ones too."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    return [(rule["id"], [node["html"][:120] for node in rule["nodes"]]) for rule in found]


def reaches_sideways(page):
    """How far the page can be scrolled to the side; 0 is as it should be."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
