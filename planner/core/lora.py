"""LoRA adapters: what a command asks for, and the bytes of their slots on a rank."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from planner.core.engine import EngineArgs, Version
from planner.core.errors import BadInput
from planner.core.lora_models import EMBEDDING_MODULES, FUSED_EXPERTS, HEAD_MODULES, MERGED_ON_DISK
from planner.core.lora_slots import LoraSlots
from planner.core.modules import Experts, Linear, Module, Split, Table
from planner.core.place import Place
from planner.core.units import ELEMENT_BYTES
from planner.core.weight_bytes import ranks_of
from planner.core.weight_rank import Rank

EXPERTS_SINCE = Version(0, 11, 1)
DTYPES = {"auto": "", "bfloat16": "bfloat16", "float16": "float16"}


def lora_slots(args: EngineArgs, *, dtype: str) -> LoraSlots | None:
    """Return the slots that a command asks for; None without `--enable-lora`.

    The adapters' dtype is the model's unless `--lora-dtype` names another. Raises BadInput for a dtype or a number that
    is none. Source: vLLM `config.lora.LoRAConfig` (0.8.5 to 0.32).
    """
    if not args.enable_lora:
        return None
    stated = str(args.setting("lora_dtype") or "auto")
    if stated not in DTYPES:
        raise BadInput(
            field="lora_dtype", message=f"{stated!r} is no dtype of adapters.", fix=f"give one of {', '.join(DTYPES)}"
        )
    modules = args.setting("lora_target_modules")
    return LoraSlots(
        max_loras=_size(args, "max_loras", 1),
        max_lora_rank=_size(args, "max_lora_rank", 16),
        dtype=DTYPES[stated] or dtype,
        fully_sharded=args.asks("fully_sharded_loras"),
        target_modules=tuple(str(modules).replace(",", " ").split()) if modules else None,
    )


def _size(args: EngineArgs, name: str, default: int) -> int:
    stated = args.setting(name)
    if stated is None:
        return default
    number = args.number(name)
    if number is None or number < 1 or number != int(number):
        raise BadInput(field=name, message=f"{name} is {stated!r}; it must be a whole number.", fix="give at least 1")
    return int(number)


def lora_bytes(rank: Rank, slots: LoraSlots) -> int:
    """Return the bytes of the slots of all layers of one rank.

    Every linear layer of the language model takes part, the router too; towers do not. A merged layer has a pair of
    matrices for each projection that its checkpoint keeps apart, of which the first is whole on every rank. Source:
    vLLM `lora.layers`, `lora.model_manager.LoRAModelManager` (0.12 to 0.32).
    """
    wrapped = _Wrapped(architecture=rank.model.architecture, place=rank.place, slots=slots)
    layers = sum(count * wrapped.elements(filter(rank.builds, layer.modules)) for layer, count in rank.layers)
    ends = wrapped.elements(filter(rank.builds, _end_modules(rank)))
    return slots.max_loras * (layers + ends) * ELEMENT_BYTES[slots.dtype]


def _end_modules(rank: Rank) -> Iterator[Module]:
    ends = rank.model.decoder.ends
    yield from ends.every
    yield from ends.first if rank.is_first else ()
    yield from ends.last if rank.is_last else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrapped:
    architecture: str
    place: Place
    slots: LoraSlots

    def elements(self, modules: Iterable[Module]) -> int:
        """Elements of one adapter over some modules."""
        return sum(self._of(module) for module in modules if self._takes_part(module))

    def _takes_part(self, module: Module) -> bool:
        targets = self.slots.target_modules
        return targets is None or module.name.rpartition(".")[2] in targets

    def _of(self, module: Module) -> int:
        match module:
            case Linear():
                return self._linear(module)
            case Experts() if self.place.runs(EXPERTS_SINCE):
                return self._experts(module)
            case Table():
                return self._table(module)
        return 0

    def _linear(self, linear: Linear) -> int:
        ranks, rank = ranks_of(linear, self.place), self.slots.max_lora_rank
        down_rank = rank // ranks if self.slots.fully_sharded and linear.split is Split.COLUMN else rank
        slices = 1 if self._is_merged_on_disk(linear) else len(linear.shards)
        outputs = sum(linear.outputs_on_rank(ranks))
        if self.slots.fully_sharded and linear.split is Split.ROW:
            outputs //= ranks
        return slices * down_rank * linear.inputs_on_rank(ranks) + outputs * rank

    def _is_merged_on_disk(self, linear: Linear) -> bool:
        name = linear.name.rpartition(".")[2]
        return name in MERGED_ON_DISK.get(self.architecture, ())

    def _experts(self, experts: Experts) -> int:
        count, rank = self.place.experts_of(experts.count), self.slots.max_lora_rank
        width = experts.intermediate_size // self.place.expert_shards
        gates = 2 if experts.gated else 1
        slices = 1 if self.architecture in FUSED_EXPERTS else gates
        shards = self.place.tensor_parallel_size if self.slots.fully_sharded else 1
        up = slices * (rank // shards) * experts.hidden_size + gates * width * rank
        return count * (up + rank * width + experts.hidden_size // shards * rank)

    def _table(self, table: Table) -> int:
        names = HEAD_MODULES if table.name.endswith("lm_head") else EMBEDDING_MODULES
        if self.architecture not in names or table.width == 1:
            return 0
        return (table.rows + table.width) * self.slots.max_lora_rank
