"""The device a plan is made for: its memory as CUDA reports it, never the nameplate or NVML's figure."""

from dataclasses import dataclass, replace

PCIE_LANE_BYTES_PER_SECOND = {"3.0": 985_000_000, "4.0": 1_969_000_000, "5.0": 3_938_000_000, "6.0": 7_563_000_000}
USUAL_LANES = 16
COHERENT_LINK_BYTES_PER_SECOND = 450_000_000_000  # NVLink-C2C to the Grace CPU, one of its two directions
GRACE = ("gh200", "gb200", "gb300")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU type, or the CPU platform (`device_type` "cpu", whose total is the host's RAM).

    Types `rocm` and `hpu` are known of, and not planned. The total is a range where drivers differ:
    `total_bytes` is its central value. Rates are peak, dense; NVLink counts both directions.
    """

    slug: str
    name: str
    device_type: str
    total_bytes: int
    total_low_bytes: int
    total_high_bytes: int
    compute_capability: tuple[int, int] | None = None
    memory_bandwidth_bytes_per_second: int | None = None
    bf16_flops: float | None = None
    fp8_flops: float | None = None
    fp4_flops: float | None = None
    nvlink_bytes_per_second: int | None = None
    pcie: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def is_cpu(self) -> bool:
        """Whether vLLM's CPU platform runs here."""
        return self.device_type == "cpu"

    @property
    def is_coherent_with_host(self) -> bool:
        """Whether a Grace CPU's memory is next to it."""
        return any(name in self.name.lower() for name in GRACE)

    @property
    def host_bytes_per_second(self) -> int | None:
        """What one direction of the link to the host carries at best: NVLink-C2C to a Grace CPU, else PCIe."""
        if self.is_coherent_with_host:
            return COHERENT_LINK_BYTES_PER_SECOND
        generation, _, lanes = self.pcie.partition(" x")
        lane = PCIE_LANE_BYTES_PER_SECOND.get(generation)
        return None if lane is None else lane * int(lanes or USUAL_LANES)

    def with_total(self, total_bytes: int) -> "Gpu":
        """Return the same device with a total that is known exactly."""
        return replace(self, total_bytes=total_bytes, total_low_bytes=total_bytes, total_high_bytes=total_bytes)

    def below(self, major: int, minor: int = 0) -> bool:
        """Whether the compute capability is known and lower than `major.minor`."""
        return self.compute_capability is not None and self.compute_capability < (major, minor)
