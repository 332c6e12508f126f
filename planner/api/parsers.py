"""Bodies of requests: JSON of a size and depth that an answer can be given to."""

from rest_framework.exceptions import APIException
from rest_framework.parsers import BaseParser

from planner.strict_json import read_json

LARGEST_BODY_BYTES = 2_000_000


class TooLarge(APIException):
    """413, which DRF has no class for."""

    status_code = 413
    default_detail = f"The body is larger than {LARGEST_BODY_BYTES:,} bytes."
    default_code = "too_large"


class StrictJsonParser(BaseParser):
    """JSON as UTF-8, whatever charset the header claims (RFC 8259)."""

    media_type = "application/json"

    def parse(self, stream, media_type=None, parser_context=None) -> object:
        body = stream.read(LARGEST_BODY_BYTES + 1)
        if len(body) > LARGEST_BODY_BYTES:
            raise TooLarge
        return read_json(body)
