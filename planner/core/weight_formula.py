"""The weights of one rank as a formula with its numbers filled in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.core.modules import Experts, Linear, Module, Split, Table, Tensor, expert_elements
from planner.core.place import Place
from planner.core.units import ELEMENT_BYTES
from planner.core.weight_bytes import module_tensors, padded_vocabulary
from planner.core.weight_rank import Rank, is_buffer, part_of


def formula_of(rank: Rank, others: Mapping[str, int]) -> str:
    """Return the sum in words: each kind of layer with its parts, what stands at the ends, what comes beside them.

    Elements times their size where all have one; bytes, and how they are stored, where they do not.
    """
    body = _elements_formula(rank) if _has_one_size(rank) else _bytes_formula(rank)
    return " + ".join([body, *(f"{name} {size:,} B" for name, size in others.items())])


def _modules(rank: Rank) -> Iterator[Module]:
    for layer, _ in rank.layers:
        yield from filter(rank.builds, layer.modules)
    yield from filter(rank.builds, rank.end_modules())


def _has_one_size(rank: Rank) -> bool:
    if rank.place.expert_shards != rank.place.tensor_parallel_size:
        return False
    return all(
        getattr(module, "scheme", None) is None and getattr(module, "dtype", None) in (None, rank.place.dtype)
        for module in _modules(rank)
        if not is_buffer(module)
    )


def _elements_formula(rank: Rank) -> str:
    kinds = [f"{count} layers x ({_parts_text(rank, layer.modules)})" for layer, count in rank.layers]
    ends = _parts_text(rank, tuple(rank.end_modules()))
    body = " + ".join([*kinds, *([ends] if ends else [])])
    return f"({body}) x {ELEMENT_BYTES[rank.place.dtype]} B"


def _bytes_formula(rank: Rank) -> str:
    kinds = [f"{count} layers x ({_stored_text(rank, layer.modules)})" for layer, count in rank.layers]
    ends = _stored_text(rank, tuple(rank.end_modules()))
    return " + ".join([*kinds, *([ends] if ends else [])])


def _stored_text(rank: Rank, modules: Sequence[Module]) -> str:
    totals: dict[str, int] = {}
    for module in modules:
        if rank.builds(module) and not is_buffer(module):
            name = " ".join((part_of(module), *_how(module, rank.place)))
            totals[name] = totals.get(name, 0) + module_tensors(module, rank.place).created_bytes
    return " + ".join(f"{name} {size:,} B" for name, size in totals.items())


def _how(module: Module, place: Place) -> Iterator[str]:
    """How a module is stored where that is not the model's dtype; how many experts a rank has."""
    if isinstance(module, Experts) and place.expert_ranks > 1:
        yield f"{place.experts_of(module.count)} of {module.count + place.redundant_experts}"
    scheme = getattr(module, "scheme", None)
    if scheme is not None:
        yield f"in {scheme.method}"


def _parts_text(rank: Rank, modules: Sequence[Module]) -> str:
    tp = rank.place.tensor_parallel_size
    built = [module for module in modules if rank.builds(module) and not is_buffer(module)]
    names = dict.fromkeys(part_of(module) for module in built)
    return " + ".join(f"{name} {_part_text([m for m in built if part_of(m) == name], tp)}" for name in names)


def _part_text(modules: Sequence[Module], tp: int) -> str:
    """What TP divides in one sum, then what comes by head or by expert, then what every rank holds whole."""
    shares = [_shares(module) for module in modules]
    divided, whole = sum(share.divided for share in shares), sum(share.whole for share in shares)
    texts = [_over(f"{divided:,}", tp)] if divided else []
    texts += [
        _over(f"{m.count} experts x {expert_elements(m, m.intermediate_size):,}", tp) for m in experts_of(modules)
    ]
    texts += [_over(f"{padded_vocabulary(m.rows):,} x {m.width:,}", tp) for m in modules if isinstance(m, Table)]
    for units, elements in _by_units(shares).items():
        held = max(1, units // tp)
        texts.append(f"{held} KV head{'s' if held > 1 else ''} x {elements:,}")
    return " + ".join([*texts, *([f"{whole:,}"] if whole else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shares:
    divided: int = 0
    whole: int = 0
    units: tuple[tuple[int, int], ...] = ()


def _shares(module: Module) -> _Shares:
    match module:
        case Linear():
            return _linear_shares(module)
        case Tensor():
            if module.units is not None:
                return _Shares(units=((module.units, module.elements // module.units),))
            return _Shares(divided=module.elements) if module.sharded else _Shares(whole=module.elements)
        case _:
            return _Shares()


def _linear_shares(linear: Linear) -> _Shares:
    outputs = sum(shard.outputs for shard in linear.shards)
    if linear.split is Split.ROW:
        return _Shares(divided=linear.inputs * outputs, whole=outputs * int(linear.bias))
    inputs = linear.inputs + int(linear.bias)
    if linear.split is Split.REPLICATED:
        return _Shares(whole=inputs * outputs)
    return _Shares(
        divided=inputs * sum(shard.outputs for shard in linear.shards if shard.units is None),
        units=tuple((s.units, inputs * (s.outputs // s.units)) for s in linear.shards if s.units is not None),
    )


def _by_units(shares: Iterable[_Shares]) -> dict[int, int]:
    totals: dict[int, int] = {}
    for share in shares:
        for units, elements in share.units:
            totals[units] = totals.get(units, 0) + elements
    return totals


def experts_of(modules: Iterable[Module]) -> Iterator[Experts]:
    """Return the routed experts among some modules."""
    return (module for module in modules if isinstance(module, Experts))


def _over(text: str, tensor_parallel_size: int) -> str:
    return f"{text}/{tensor_parallel_size}" if tensor_parallel_size > 1 else text
