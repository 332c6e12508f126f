"""What a command moves to the host's memory: which weights, and how they come back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadRequest:
    """`uva` leaves `limit_bytes` of each rank's layers on the host and reads them over the link in every step.

    `prefetch` moves the last `layers` of every `group_size` layers there and copies each back, `ahead` layers before
    it runs, into buffers that stay on the GPU.
    """

    backend: str
    limit_bytes: int = 0
    group_size: int = 0
    layers: int = 1
    ahead: int = 1
