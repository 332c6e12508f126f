"""The tables of the catalog as plain data; each file is read when it is first asked for."""

from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_table(name: str) -> dict[str, Any]:
    """Return the content of one YAML file of the catalog."""
    with (HERE / name).open(encoding="utf-8") as file:
        content: dict[str, Any] = yaml.load(file, _LOADER)  # noqa: S506 -- both loaders are the safe ones
    return content
