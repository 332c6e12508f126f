"""The fingerprint of a saved plan: the same for the same content, whichever database kept it."""

import json
from hashlib import sha256


def content_hash(inputs: object, document: object, core_version: str) -> str:
    """Return the SHA-256 of the canonical JSON of what a plan froze."""
    return sha256(canonical_json([core_version, inputs, document]).encode()).hexdigest()


def canonical_json(value: object) -> str:
    """Return JSON with sorted keys, no spaces, and every number as a double.

    A number's spelling does not survive a database (PostgreSQL's jsonb gives 1e16 back as an integer); its value does.
    """
    as_doubles = json.loads(json.dumps(value, allow_nan=False), parse_int=float)
    return json.dumps(as_doubles, sort_keys=True, separators=(",", ":"), allow_nan=False)
