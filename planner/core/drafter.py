"""What speculative decoding adds to the last pipeline stage: a drafter's layers, and the tables that are its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from planner.core.decoder import Decoder, Ends, Layer, with_shared_layers
from planner.core.engine import Version
from planner.core.errors import BadInput, Unknown
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.modules import Tensor
from planner.core.rope import Rope
from planner.core.speculation import WITHOUT_WEIGHTS, Speculation
from planner.core.tower import whole

FIELD = "speculative_config"
HEADS = "mtp"
REACHES_AS_FAR_SINCE = Version(0, 27, 1)
LLAMAS = frozenset({"LlamaForCausalLM", "EagleLlamaForCausalLM"})
NORMS = "norms"
COUNT_THEMSELVES = frozenset({"suffix"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """A drafter on the ranks of the last stage: `model` has its layers and the ends that it does not share."""

    method: str
    model: Model

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Its layers, which cache beside the target's."""
        return self.model.layers

    def layout(self, target: Layout) -> Layout:
        """Return how its one stage is laid out: over the same tensor-parallel ranks."""
        return replace(target, pipeline_parallel_size=1, layers_per_stage=(self.model.num_layers,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The model that is drafted for, over how many stages and how long contexts a release serves it."""

    model: Model
    stages: int = 1
    max_model_len: int = 0
    version: Version | None = None


def drafter_of(target: Target, speculation: Speculation | None, *, draft: Model | None = None) -> Drafter | None:
    """Return what a command's speculation holds in memory; None where it drafts without weights, or not at all.

    `draft` is the drafter's own model, where the command names one. Raises Unknown for heads or drafters whose layers
    are not derived here. Source: vLLM `v1.worker.gpu.spec_decode.eagle.utils.load_eagle_model`,
    `v1.spec_decode.llm_base_proposer` (0.11 to 0.32).
    """
    if speculation is None:
        return None
    _require_tokens(target, speculation)
    if speculation.method in WITHOUT_WEIGHTS:
        return None
    if speculation.method == HEADS and speculation.model in ("", target.model.name):
        return Drafter(method=HEADS, model=_with_decoder(target.model, _heads(target)))
    if draft is None:
        raise _unknown(f"the drafter {speculation.model or speculation.method} is not known.", speculation)
    read = _READERS.get(speculation.method)
    decoder = read(draft, target) if read else None
    if decoder is None:
        raise _unknown(f"{draft.architecture} as a drafter by {speculation.method} is not planned yet.", speculation)
    return Drafter(method=speculation.method, model=_with_decoder(draft, decoder))


def _require_tokens(target: Target, speculation: Speculation) -> None:
    """Only suffix decoding has a default; heads that predict several tokens a turn draft whole turns."""
    tokens, method = speculation.tokens, speculation.method
    if tokens == 0 and method not in COUNT_THEMSELVES:
        message = f"num_speculative_tokens is not given, and {method} has no default."
        raise BadInput(field=FIELD, message=message, fix="add num_speculative_tokens, such as 3")
    heads = target.model.predictor
    count = len(heads.layers) if heads and method == HEADS else 1
    if tokens > count and tokens % count:
        message = f"{tokens} drafted tokens are no multiple of the {count} heads."
        raise BadInput(field=FIELD, message=message, fix=f"draft {tokens // count * count} tokens")


def _heads(target: Target) -> Decoder:
    """The checkpoint's own heads share both tables; over several stages they keep a copy of the embedding."""
    heads = target.model.predictor
    if heads is None:
        raise Unknown(
            field=FIELD,
            message=f"{target.model.architecture} brings no heads to draft with that are planned.",
            fix="name another method, or drop --speculative-config to plan the rest",
        )
    return heads if target.stages > 1 else _without_embedding(heads)


def _whole_model(draft: Model, target: Target) -> Decoder | None:
    """A model beside the target shares nothing with it but a rotary table that is alike."""
    if draft.decoder.drafts_only or target.stages > 1:
        return None
    return _rotating(draft.decoder, target)


def _eagle_3(draft: Model, target: Target) -> Decoder | None:
    """The head takes the target's embedding where it is at hand and as wide; its head is its own."""
    return _in_its_place(draft.decoder, target) if draft.decoder.drafts_only else None


def _eagle(draft: Model, target: Target) -> Decoder | None:
    """The first EAGLE: Llama layers over a projection, the first without its entrance norm; the head is the target's.

    vLLM numbers its layers after those of one stage, so over several stages two of them clash.
    """
    if draft.architecture not in LLAMAS or target.stages > 1:
        return None
    decoder = draft.decoder
    width, first = decoder.hidden_size, decoder.layers[0]
    lighter = tuple(
        replace(module, elements=module.elements - width)
        if isinstance(module, Tensor) and module.name == NORMS
        else module
        for module in first.modules
    )
    head = replace(
        decoder,
        layers=(replace(first, modules=lighter), *decoder.layers[1:]),
        ends=Ends(first=decoder.ends.first, every=(whole("fc", 2 * width, width, bias=False),)),
        tie_word_embeddings=False,
    )
    return _in_its_place(head, target)


_READERS: Mapping[str, Callable[[Model, Target], Decoder | None]] = MappingProxyType(
    {"draft_model": _whole_model, "eagle": _eagle, "eagle3": _eagle_3}
)


def _in_its_place(drafter: Decoder, target: Target) -> Decoder:
    """EAGLE's heads speak of the target's positions, so their rotary tables reach as far (vLLM 0.27.1 on)."""
    if target.version is None or target.version >= REACHES_AS_FAR_SINCE:
        longest = target.max_model_len
        ropes = tuple(replace(rope, positions=max(rope.positions, longest)) for rope in drafter.ropes)
        drafter = replace(drafter, ropes=ropes)
    shares = target.stages == 1 and drafter.hidden_size == target.model.hidden_size
    return _rotating(_without_embedding(drafter) if shares else drafter, target)


def _without_embedding(decoder: Decoder) -> Decoder:
    return replace(decoder, ends=replace(decoder.ends, first=()))


def _rotating(drafter: Decoder, target: Target) -> Decoder:
    """A rotary table that is just like one of the target's is that one."""
    decoder = target.model.decoder
    known = {*decoder.ropes, *(rope for layer in decoder.layers for rope in layer.ropes)}
    layers = tuple(replace(layer, ropes=_others(layer.ropes, known)) for layer in drafter.layers)
    return with_shared_layers(replace(drafter, layers=layers, ropes=_others(drafter.ropes, known)))


def _others(ropes: tuple[Rope, ...], known: set[Rope]) -> tuple[Rope, ...]:
    return tuple(rope for rope in ropes if rope not in known)


def _with_decoder(model: Model, decoder: Decoder) -> Model:
    return replace(model, decoder=decoder, predictor=None)


def _unknown(message: str, speculation: Speculation) -> Unknown:
    named = f"add {speculation.model} to the catalog first, or " if speculation.model else ""
    return Unknown(field=FIELD, message=message, fix=f"{named}drop --speculative-config to plan the rest")
