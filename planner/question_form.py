"""The workbench's form: fields under vLLM's own names, what an empty one means, and what is wrong with a full one."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from django.http import QueryDict

from planner.catalog.flags import flags
from planner.core.choices import SIZES, SizeChoice
from planner.core.engine import EngineArgs, Version
from planner.core.errors import BadInput, PlanningError
from planner.query import ABOUT_THE_MACHINE, inputs_from_query, query_from_inputs

MAIN_FLAGS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "gpu_memory_utilization",
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "kv_cache_dtype",
)
KEPT_BESIDE_A_COMMAND = ("gpu", "gpu_count", "gpu_memory_gib", "free_gib", "vllm_version", "request", "command")
NOT_FLAGS = {*ABOUT_THE_MACHINE, "request", "from", "command", "other", "environment"}
ROW_PARTS = ("name", "share", "prompt", "output", "prefix", "concurrent")
HARDWARE = {
    "gpu_count": ("GPUs at hand", "as needed"),
    "gpu_memory_gib": ("GiB CUDA sees on one", "catalog"),
    "free_gib": ("GiB free on it at start", "all free"),
}
DTYPES = ("auto", "bfloat16", "float16", "float32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One option of a field; a refused one stays visible with its reason."""

    value: str
    label: str
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field: `value` is what was typed, `default` what this version does when it is empty."""

    name: str
    label: str
    value: str = ""
    default: str = "default"
    choices: tuple[Choice, ...] = ()
    error: str = ""

    @property
    def options(self) -> tuple[Choice, ...]:
        """The choices, with what was typed among them even if it is none."""
        if not self.value or self.value in {choice.value for choice in self.choices}:
            return self.choices
        return (*self.choices, Choice(value=self.value, label=self.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """One request class as it is typed: six texts, in the order of the address."""

    name: str = ""
    share: str = ""
    prompt: str = ""
    output: str = ""
    prefix: str = ""
    concurrent: str = ""


class QuestionForm:
    """What the template draws; `document` fills in the defaults, `fault` stands beside the field it names."""

    def __init__(
        self,
        typed: QueryDict,
        *,
        version: Version,
        versions: Iterable[str] = (),
        newest: Version,
        document: Mapping[str, Any] | None = None,
        fault: PlanningError | None = None,
        sizes: Sequence[SizeChoice] = (),
    ) -> None:
        self.typed, self.version = typed, version
        self.sizes = sizes or [SizeChoice(size=size, refusal="") for size in SIZES]
        self.engine = (document or {}).get("engine") or {}
        self.fault = fault
        self.main = [self._flag(name) for name in MAIN_FLAGS]
        self.more = [self._flag(name) for name in self._other_flags()]
        self.model, self.gpu = self._field("model", "model"), self._field("gpu", "gpu")
        self.hardware = [self._field(name, label, default=empty) for name, (label, empty) in HARDWARE.items()]
        self.release = self._field("vllm_version", "vLLM", default=str(newest), choices=map(_same, versions))
        self.command, self.other = self._field("command", "command"), self._field("other", "other")
        self.requests = [*map(request_row, typed.getlist("request")), RequestRow()]

    @property
    def more_set(self) -> int:
        """How many of the rarer flags are set."""
        return sum(1 for field in self.more if field.value or field.error)

    @property
    def request_error(self) -> str:
        """What is wrong with the traffic."""
        return self._error("request", "requests")

    @property
    def unplaced_error(self) -> str:
        """A fault whose field is nowhere on this form."""
        shown = {
            *MAIN_FLAGS,
            *(field.name for field in self.more),
            *ABOUT_THE_MACHINE,
            "request",
            "requests",
            "command",
        }
        return "" if self.fault is None or self.fault.field in shown else str(self.fault)

    def _other_flags(self) -> list[str]:
        """The rest of what matters for memory in this version, then whatever else the address sets."""
        skipped = {*MAIN_FLAGS, *NOT_FLAGS, "other"}
        known = [field.name for field in fields(EngineArgs) if field.name not in skipped]
        living = [name for name in known if name in flags() and flags()[name].lives.holds(self.version)]
        return [*living, *(name for name in self.typed if name not in {*living, *skipped})]

    def _flag(self, name: str) -> FormField:
        label = name if name.isupper() else name.replace("_", "-")
        return self._field(name, label, default=self._default(name), choices=self._choices(name))

    def _field(self, name: str, label: str, *, default: str = "", choices: Iterable[Choice] = ()) -> FormField:
        return FormField(
            name=name,
            label=label,
            value=self.typed.get(name, ""),
            default=default,
            choices=tuple(choices),
            error=self._error(name),
        )

    def _error(self, *names: str) -> str:
        fault = self.fault
        return f"{fault.message} Fix: {fault.fix}" if fault is not None and fault.field in names else ""

    def _default(self, name: str) -> str:
        """The resolved value where the field is empty, as this version and device have it."""
        value = self.engine.get(name)
        if value is None or name in self.engine.get("given", ()):
            return "default"
        if isinstance(value, bool):
            return "on" if value else "off"
        return f"{len(value)} sizes" if isinstance(value, list | tuple) else str(value)

    def _choices(self, name: str) -> tuple[Choice, ...]:
        if name == "tensor_parallel_size":
            return tuple(map(_size_choice, self.sizes))
        flag = flags().get(name)
        if flag is None:
            return ()
        if flag.kind in {"bool", "switch"}:
            return (Choice(value="true", label="on"), Choice(value="false", label="off"))
        values = DTYPES if name == "dtype" else flag.choices_in(self.version)
        return tuple(map(_same, values))


def _same(value: str) -> Choice:
    return Choice(value=value, label=value)


def _size_choice(choice: SizeChoice) -> Choice:
    label = f"{choice.size} – {choice.refusal}" if choice.refusal else str(choice.size)
    return Choice(value=str(choice.size), label=label, refused=bool(choice.refusal))


def request_row(text: str) -> RequestRow:
    """Return one request class of the address as its parts; what is missing is empty."""
    return RequestRow(**dict(zip(ROW_PARTS, text.split(":"), strict=False)))


def state_of(sent: QueryDict) -> QueryDict:
    """Return the address's whole state: set fields alone, and the rows of the traffic as one `request` each."""
    state = QueryDict(mutable=True)
    row_fields = [f"request_{part}" for part in ROW_PARTS]
    for name, values in sent.lists():
        if name not in row_fields:
            state.setlist(name, [value.strip() for value in values if value.strip()])
    rows = zip(*(sent.getlist(name) for name in row_fields), strict=False)
    typed_rows = (":".join(part.strip().replace(":", " ") for part in row).rstrip(":") for row in rows)
    for row in filter(None, typed_rows):
        state.appendlist("request", row)
    for name in [name for name, values in state.lists() if not values]:
        del state[name]
    return state


def read_into(state: QueryDict) -> QueryDict:
    """Return the state with a pasted command, or flags typed as text, taken apart into fields of their own.

    A command replaces every flag and keeps the machine and the traffic; typed flags are added to those that are set.
    """
    if "command" in state:
        return _taken_apart(state, {name: state.getlist(name) for name in KEPT_BESIDE_A_COMMAND}, "command")
    if "other" in state and "model" in state:
        sent = {name: values for name, values in state.lists() if name != "other"}
        command = f"vllm serve {shlex.quote(state.getlist('model')[-1])} {state['other']}"
        return _taken_apart(state, {**sent, "command": [command]}, "other")
    return state


def _taken_apart(state: QueryDict, sent: Mapping[str, list[str]], field: str) -> QueryDict:
    try:
        read = QueryDict(query_from_inputs(inputs_from_query(sent)), mutable=True)
    except PlanningError as fault:
        raise BadInput(field=field, message=fault.message, fix=fault.fix) from fault
    if "from" in state:
        read.setlist("from", state.getlist("from"))
    return read
