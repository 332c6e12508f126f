"""What an interface was given -> the Question for the arithmetic: names looked up, texts read, nothing computed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner import catalog
from planner.catalog.flags import flags
from planner.core.capacity import RequestClass
from planner.core.engine import EngineArgs
from planner.core.errors import BadInput, Unknown
from planner.core.estimate import Question
from planner.core.hardware import Gpu
from planner.core.model import Model, model_from_config
from planner.core.speculation import speculation_of
from planner.core.units import bytes_from_gib
from planner.inputs import (
    Inputs,
    args_of,
    check_included,
    count_of,
    gib_of,
    known_names,
    mapping_of,
    request_classes,
    required,
    text_of,
)
from planner.query import inputs_from_query as inputs_from_query
from planner.query import query_from_inputs as query_from_inputs
from planner.readers.command import read_fields
from planner.readers.config import overridden, overrides_of

Config = Mapping[str, Any]
NOT_SWEPT = frozenset({"model", "usage", "environment", "other"})


def ask(
    *,
    gpu: str | Gpu,
    args: EngineArgs,
    config: Config | None = None,
    gpu_count: int | None = None,
    gpu_memory_gib: float | None = None,
    vllm_version: str | None = None,
    free_gib: float | None = None,
    requests: Sequence[RequestClass] = (),
    find_model: Callable[[str], Model] | None = None,
    find_gpu: Callable[[str], Gpu] | None = None,
    find_config: Callable[[str], Config] | None = None,
) -> Question:
    """Return the question that these facts ask.

    A `config` makes the model a mere name; `gpu_memory_gib` is an exact total as CUDA reports it (for the CPU
    platform: the host's RAM). Raises BadInput, or Unknown for a model, GPU or version that nobody here knows.
    """
    facts = catalog.engine_facts(vllm_version)
    _refuse_unplanned(args)
    overrides = overrides_of(args)
    if config is None and overrides:
        config = (find_config or catalog.find_config)(args.model)
    if config is None:
        model = (find_model or catalog.find_model)(args.model)
    else:
        model = model_from_config(overridden(config, overrides), name=args.model)
    return Question(
        model=model,
        gpu=_gpu(gpu, gpu_memory_gib, find_gpu or catalog.find_gpu),
        gpu_count=_visible(gpu_count, args),
        facts=facts,
        args=args,
        fit=catalog.fit(),
        free_bytes=None if free_gib is None else bytes_from_gib(free_gib),
        requests=tuple(requests),
        draft=_draft(args, find_model or catalog.find_model),
    )


def question_from_inputs(
    inputs: Inputs,
    *,
    find_model: Callable[[str], Model] | None = None,
    find_gpu: Callable[[str], Gpu] | None = None,
    find_config: Callable[[str], Config] | None = None,
) -> Question:
    """Return the question of a JSON body (see `INPUT_NAMES`). Raises BadInput, naming the field, or Unknown."""
    known_names(inputs)
    check_included(inputs.get("include"))
    return ask(
        gpu=required(inputs, "gpu", "a GPU, such as a100-sxm4-80gb"),
        args=args_of(inputs),
        config=mapping_of(inputs, "config"),
        gpu_count=count_of(inputs.get("gpu_count")),
        gpu_memory_gib=gib_of(inputs, "gpu_memory_gib"),
        vllm_version=text_of(inputs, "vllm_version"),
        free_gib=gib_of(inputs, "free_gib"),
        requests=request_classes(inputs.get("requests")),
        find_model=find_model,
        find_gpu=find_gpu,
        find_config=find_config,
    )


def axes_of(axes: Mapping[str, Any], *, vllm_version: str | None) -> dict[str, tuple[Any, ...]]:
    """Return the flags to sweep over with their values as that release reads them.

    Raises BadInput for a flag that nobody knows, that touches no memory, or whose values are no list.
    """
    version = catalog.engine_facts(vllm_version).version
    swept: dict[str, tuple[Any, ...]] = {}
    for name, values in axes.items():
        flag = name.replace("-", "_").lstrip("_")
        if flag not in EngineArgs.__dataclass_fields__ or flag in NOT_SWEPT:
            raise BadInput(field=f"axes.{name}", message=f"{name} cannot be swept.", fix="name a flag of memory")
        if not isinstance(values, list | tuple) or not values:
            message = "the values of an axis are a list."
            raise BadInput(field=f"axes.{name}", message=message, fix="give e.g. [1, 2, 4]")
        read = (read_fields({flag: value}, version=version) for value in values)
        swept[flag] = tuple(getattr(args, flag) for args in read)
    return swept


def _draft(args: EngineArgs, find_model: Callable[[str], Model]) -> Model | None:
    """Return the model that a command names to draft with; what nobody here knows is told by the arithmetic."""
    speculation = speculation_of(args)
    if speculation is None or speculation.model in ("", args.model):
        return None
    try:
        return find_model(speculation.model)
    except Unknown:
        return None


def _gpu(wanted: str | Gpu, gpu_memory_gib: float | None, find_gpu: Callable[[str], Gpu]) -> Gpu:
    gpu = find_gpu(wanted) if isinstance(wanted, str) else wanted
    if gpu_memory_gib is not None:
        return gpu.with_total(bytes_from_gib(gpu_memory_gib))
    if gpu.total_bytes <= 0:
        raise BadInput(field="gpu_memory_gib", message=f"The memory of {gpu.name} is not known.", fix="give it in GiB")
    return gpu


def _visible(gpu_count: int | None, args: EngineArgs) -> int | None:
    """Return the cap on GPUs, lowered to what CUDA_VISIBLE_DEVICES or `--device-ids` leaves visible."""
    devices = dict(args.other).get("device_ids") or args.env("CUDA_VISIBLE_DEVICES")
    if not devices:
        return gpu_count
    visible = len([device for device in str(devices).split(",") if device.strip()])
    return visible if gpu_count is None else min(gpu_count, visible)


def _refuse_unplanned(args: EngineArgs) -> None:
    for name, value in args.other:
        flag = flags().get(name)
        if flag is not None and flag.unplanned and value is not False and value not in flag.planned:
            raise Unknown(
                field=name,
                message=f"{flag.option} is not planned yet: {flag.unplanned}.",
                fix=f"drop {flag.option} to plan the rest",
            )
