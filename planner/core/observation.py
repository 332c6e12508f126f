"""What published boots measured, as the fit takes it: one stage of one boot, repeats counted once."""

from collections.abc import Iterable
from dataclasses import dataclass

from planner.core.fit import Evidence
from planner.core.situation import Situation


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one stage of one boot measured, in bytes; None where the log does not say. `group` is left out together.

    `overhead_bytes` is what was gone from the budget beside the parameters and KV. What the allocator adds to weight
    tensors counts as non-torch here, though logs before 0.27.1 call it weights.
    """

    boot: str
    group: str
    situation: Situation
    activation_bytes: float | None = None
    non_torch_bytes: float | None = None
    graphs_bytes: float | None = None
    graphs_estimated_bytes: float | None = None
    activation_with_graphs_bytes: float | None = None
    overhead_bytes: float | None = None

    @property
    def configuration(self) -> tuple[object, ...]:
        """What makes two boots the same measurement: repeats must not count as independent."""
        s = self.situation
        return (
            *(s.model.name, s.args.dtype, s.gpu.compute_capability, s.facts.version.major, s.facts.version.minor),
            *(s.layout.tensor_parallel_size, s.layout.pipeline_parallel_size, s.pp_stage),
            *(s.args.max_num_seqs, s.args.max_num_batched_tokens, s.args.cudagraph_mode, s.args.model_runner),
        )


def distinct_observations(observations: Iterable[Observation]) -> list[Observation]:
    """Return one observation a configuration, the first; repeats of a boot print the same figures."""
    first: dict[tuple[object, ...], Observation] = {}
    for observation in observations:
        kept = first.setdefault(observation.configuration, observation)
        if _facts_known(observation) > _facts_known(kept):
            first[observation.configuration] = observation
    return list(first.values())


def _facts_known(o: Observation) -> int:
    return sum(value is not None for value in _measured_terms_of(o).values())


def evidence_of(observations: Iterable[Observation]) -> tuple[Evidence, ...]:
    """Return the boots behind a fit, each once, with the terms that they measured."""
    found: dict[str, Evidence] = {}
    for o in observations:
        s = o.situation
        terms = frozenset(name for name, value in _measured_terms_of(o).items() if value is not None)
        known = found[o.boot].terms if o.boot in found else frozenset[str]()
        found[o.boot] = Evidence(
            boot=o.boot,
            terms=terms | known,
            version=(s.facts.version.major, s.facts.version.minor),
            compute_capability=s.gpu.compute_capability or (0, 0),
            gpu=s.gpu.slug,
            model_runner=s.args.model_runner,
            architecture=s.model.architecture,
            kind=s.kind,
            quantised=s.model.quantization is not None,
            hidden_size=s.model.hidden_size,
            world_size=s.layout.world_size,
        )
    return tuple(found[boot] for boot in sorted(found))


def _measured_terms_of(o: Observation) -> dict[str, float | None]:
    return {
        "activation": o.activation_bytes,
        "non_torch": o.non_torch_bytes,
        "cuda_graphs": o.graphs_bytes,
        "graphs_estimated": o.graphs_estimated_bytes,
        "overhead": o.overhead_bytes,
    }
