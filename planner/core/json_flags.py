"""Flags whose value is a JSON object."""

import json
from collections.abc import Mapping

from planner.core.engine import EngineArgs
from planner.core.errors import BadInput


def json_flag(args: EngineArgs, name: str) -> Mapping[str, object]:
    """Return what a flag holds as a mapping, empty when it is not given; BadInput for broken JSON or another kind."""
    text = args.setting(name)
    if not text:
        return {}
    try:
        read = json.loads(str(text))
    except json.JSONDecodeError as fault:
        message = f"not JSON ({fault.msg} at character {fault.pos})."
        raise BadInput(field=name, message=message, fix="give a JSON object in braces") from None
    if not isinstance(read, dict):
        raise BadInput(field=name, message="no JSON object.", fix="give a JSON object in braces")
    return read
