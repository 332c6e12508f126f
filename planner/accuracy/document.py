"""docs/accuracy.md: the account's tables within `document.md`, which says what they mean."""

from pathlib import Path
from typing import Any

from planner.accuracy.text import as_markdown

_FRAME = Path(__file__).parent / "document.md"


def accuracy_document(account: dict[str, Any]) -> str:
    """Return the document in Markdown."""
    return _FRAME.read_text(encoding="utf-8").replace("{tables}", as_markdown(account))
