"""Bytes and binary units, both ways; GB (10^9) never appears inside the core."""

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
ELEMENT_BYTES = {**DTYPE_BYTES, "int64": 8, "int32": 4, "int8": 1, "uint8": 1, "bool": 1, "float8_e4m3fn": 1}


def gib(size_bytes: float) -> float:
    """Return a byte count in GiB, for display only."""
    return size_bytes / GIB


def bytes_from_gib(size_gib: float) -> int:
    """Return a GiB figure as whole bytes, rounded to the nearest byte."""
    return round(size_gib * GIB)


def cdiv(numerator: int, denominator: int) -> int:
    """Return the ceiling of an integer division (vLLM `cdiv`)."""
    return -(-numerator // denominator)


def round_up(value: int, multiple: int) -> int:
    """Return the smallest multiple of `multiple` that is not below `value`."""
    return cdiv(value, multiple) * multiple


def in_gib(size_bytes: float) -> str:
    """Return a byte count as text in GiB with two decimals, as vLLM logs it."""
    return f"{gib(size_bytes):.2f} GiB"


def in_words(size_bytes: float) -> str:
    """Return a byte count as text in the unit that keeps it readable: B, KiB, MiB or GiB."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(size_bytes) >= unit:
            return f"{size_bytes / unit:,.2f}".rstrip("0").rstrip(".") + f" {name}"
    return f"{size_bytes:,.0f} B"
