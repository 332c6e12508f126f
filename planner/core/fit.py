"""What was learned from published boots: the constants of the measured terms, their spread, and the boots behind them.

`fitting.py` makes a `Fit`; the terms only read it.
"""

from dataclasses import dataclass

from planner.core.terms import Interval

ENOUGH_BOOTS = 5
STATES = "states"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far a boot may lie from the central value, 5 to 95 %: so many bytes, plus a share of the value."""

    below_bytes: int
    above_bytes: int
    below_share: float = 0.0
    above_share: float = 0.0

    def around(self, central_bytes: int) -> Interval:
        """Return the interval of a term; memory is never negative."""
        below = self.below_bytes + int(self.below_share * central_bytes)
        above = self.above_bytes + int(self.above_share * central_bytes)
        return Interval(low_bytes=max(0, central_bytes - below), bytes=central_bytes, high_bytes=central_bytes + above)


@dataclass(frozen=True, slots=True, kw_only=True)
class TermSpread:
    """A term's spread on a device and version seen often enough, and elsewhere."""

    seen: Spread
    extrapolated: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationFit:
    """Peak activation where vLLM's source does not give the bytes.

    `sorting_bytes_per_logit` is what sorting the vocabulary takes beside the logits (before 0.17), `body_hidden_copies`
    the live copies of a batch's hidden states in a layer, `base_bytes` what every profile holds beside.
    """

    sorting_bytes_per_logit: float
    body_hidden_copies: float
    base_bytes: float
    spread: TermSpread


@dataclass(frozen=True, slots=True, kw_only=True)
class NonTorchGroup:
    """Non-torch growth of one way to spread ranks on one kind of device, in one era of measuring.

    `bytes_per_tp_hidden` is what each hidden unit of each tensor-parallel rank adds (communication workspaces).
    `joint_scale` makes the interval of all measured terms together hold as often as it says on boots of this group.
    """

    spread_over: str
    hardware: str
    era: str
    base_bytes: float
    bytes_per_tp_hidden: float
    spread: Spread
    joint_scale: float
    boots: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NonTorchFit:
    """All groups, the spread where none fits, and what logits with rows off the 16-byte grid add.

    That addition was seen on every boot of three such models, alone or under tensor parallelism; why is not known.
    """

    groups: tuple[NonTorchGroup, ...]
    unaligned_alone_bytes: float
    unaligned_together_bytes: float
    unaligned_boots: tuple[str, ...]
    extrapolated: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFit:
    """CUDA graphs: a base, and bytes of one layer in one graph; spreads of what is captured and of vLLM's estimate.

    `experts_share` and `quantised_share` are added to a layer's bytes where it routes over experts or quantises its
    inputs; `estimated_share` is what vLLM's estimate comes to of what is captured.
    """

    base_bytes: float
    bytes_per_layer_and_graph: float
    experts_share: float
    quantised_share: float
    estimated_share: float
    captured: TermSpread
    estimated: TermSpread


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A boot that a term rests on, with what makes it near or far."""

    boot: str
    terms: frozenset[str]
    version: tuple[int, int]
    compute_capability: tuple[int, int]
    gpu: str
    model_runner: str
    architecture: str
    kind: str
    quantised: bool
    hidden_size: int
    world_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Everything learned, and the boots it was learned from.

    `unseen_share` of the device's memory is how far the terms together were off, 19 times in 20, on boots of a
    release and device that fewer than five boots speak for.
    """

    unseen_share: float
    activation: ActivationFit
    non_torch: NonTorchFit
    graphs: GraphFit
    evidence: tuple[Evidence, ...]

    def boots_of(self, version: tuple[int, int], gpu: str, kind: str) -> int:
        """Return how many boots of this minor version on this GPU (its slug) the fit rests on.

        Models that keep states load other kernels: they and all others do not speak for one another.
        """
        return sum(e.version == version and e.gpu == gpu and _alike(e.kind, kind) for e in self.evidence)


def _alike(one: str, other: str) -> bool:
    return (one == STATES) == (other == STATES)
