"""Figures as a person reads them: always with a unit, signs written out, ranges with a dash."""

from planner.core.units import gib, in_words

_LARGE = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k"))
_GIGA = 10**9
_TERA = 10**12


def parameters_in_words(count: int) -> str:
    """Return a number of parameters as the field writes it: 70.6 B, 125 M."""
    for unit, name in _LARGE:
        if count >= unit:
            return f"{_three_digits(count / unit)} {name}"
    return str(count)


def rate_in_words(bytes_per_second: float) -> str:
    """Return a transfer rate in GB/s (10^9 bytes), the unit of datasheets."""
    return f"{bytes_per_second / _GIGA:,.0f} GB/s"


def flops_in_words(flops: float) -> str:
    """Return peak dense arithmetic in TFLOPS."""
    return f"{_three_digits(flops / _TERA)} TFLOPS"


def share_in_words(share: float) -> str:
    """Return a share of 1 in percent with one decimal."""
    return f"{share:.1%}"


def rate_from_gb_per_second(rate: float) -> int:
    """Return a datasheet's GB/s as bytes a second."""
    return round(rate * _GIGA)


def flops_from_tera(teraflops: float) -> float:
    """Return a datasheet's TFLOPS as operations a second."""
    return teraflops * _TERA


def range_in_gib(low_bytes: int, high_bytes: int) -> str:
    """Return a span of memory in GiB with two decimals, or one figure where both ends read the same."""
    low, high = f"{gib(low_bytes):.2f}", f"{gib(high_bytes):.2f}"
    return f"{low} GiB" if low == high else f"{low}–{high} GiB"


def signed_bytes(difference_bytes: float) -> str:
    """Return a difference of sizes with its sign, `±0` where there is none."""
    return f"{_sign(difference_bytes)}{in_words(abs(difference_bytes))}" if difference_bytes else "±0"


def signed_count(difference: float) -> str:
    """Return a difference of counts with its sign, `±0` where there is none."""
    return f"{_sign(difference)}{_trimmed(abs(difference))}" if difference else "±0"


def _sign(value: float) -> str:
    return "+" if value > 0 else "\N{MINUS SIGN}"


def _three_digits(value: float) -> str:
    return _trimmed(round(value, 1) if value < 1000 else round(value))


def _trimmed(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".")
