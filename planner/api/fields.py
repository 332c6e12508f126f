"""Fields that take JSON's own types and no lookalikes: 4 is a number, "4" and true are not."""

from math import isfinite
from typing import Any

from rest_framework import serializers


class Text(serializers.CharField):
    """A JSON string."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    """A JSON number without a fraction."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int | float) or not isfinite(data) or data != int(data):
            self.fail("invalid")
        return int(data)


class Figure(serializers.FloatField):
    """A JSON number."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float) or not isfinite(data):
            self.fail("invalid")
        return float(data)
