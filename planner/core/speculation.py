"""Speculative decoding as a command asks for it: the method, and how many tokens are drafted."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.core.engine import EngineArgs
from planner.core.errors import BadInput
from planner.core.json_flags import json_flag

WITHOUT_WEIGHTS = frozenset({"ngram", "ngram_gpu", "suffix"})
EAGLE_METHODS = frozenset({"eagle", "eagle3", "mtp", "extract_hidden_states", "dflash"})
NGRAM = frozenset({"ngram", "[ngram]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """A drafter: `method` under vLLM's name, `tokens` drafted a step (0: the checkpoint says), `model` where named."""

    method: str
    tokens: int = 0
    model: str = ""
    parallel: bool = False
    pads_batch: bool = True

    @property
    def extra_slots(self) -> int:
        """Slots of a step's input that a request takes beside its scheduled tokens.

        Source: vLLM `SpeculativeConfig.max_num_new_slots_for_drafting`, 0.28 on.
        """
        if self.method == "dflash":
            return self.tokens
        if self.parallel or self.method == "dspark":
            return self.tokens if self.method == "draft_model" else self.tokens - 1
        return 1 if self.method == "draft_model" else 0


def speculation_of(args: EngineArgs) -> Speculation | None:
    """Return the drafter that `--speculative-config` asks for, None without one; BadInput where it is no number."""
    stated = json_flag(args, "speculative_config")
    if not stated:
        return None
    return Speculation(
        method=_method(stated),
        tokens=_tokens(stated),
        model=str(stated.get("model") or ""),
        parallel=bool(stated.get("parallel_drafting")),
        pads_batch=not stated.get("disable_padded_drafter_batch"),
    )


def _method(stated: Mapping[str, object]) -> str:
    """A method that is left out is told by the drafter's name (vLLM `SpeculativeConfig.__post_init__`)."""
    method = str(stated.get("method") or "").lower()
    if method:
        return _plain(method)
    model = str(stated.get("model") or "").lower()
    if model in NGRAM:
        return "ngram"
    told = (name for name in ("eagle3", "eagle", "medusa", "dflash", "mtp") if name in model)
    return next(told, "draft_model")


def _plain(method: str) -> str:
    if method in NGRAM:
        return "ngram"
    return "mtp" if method.endswith("_mtp") else method


def _tokens(stated: Mapping[str, object]) -> int:
    tokens = stated.get("num_speculative_tokens") or 0
    if isinstance(tokens, int) and tokens >= 0:
        return tokens
    message = f"num_speculative_tokens is {tokens!r}."
    raise BadInput(field="speculative_config", message=message, fix="give a whole number from 1 up")
