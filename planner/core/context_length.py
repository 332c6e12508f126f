"""How long a context vLLM derives for a model, version by version, and which key of config.json decides it."""

from dataclasses import dataclass

from planner.core.config_keys import ConfigKeys
from planner.core.engine import Version
from planner.core.rope import Rope

LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
LENGTH_NOT_SCALED = frozenset({"longrope", "llama3"})
YARN_LENGTH_STATED_SINCE = Version(0, 30)
LONGROPE_STARTS_SHORT_SINCE = Version(0, 11, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLength:
    """What config.json says of the longest context: the smallest of vLLM's keys, and how RoPE stretches it.

    `stated_tokens` is None when no key says it: vLLM then assumes 2,048 and lets any longer length through.
    """

    stated_tokens: int | None
    key: str
    rope: Rope
    outside_original_tokens: int | None = None

    def limit(self, version: Version | None = None) -> int | None:
        """Return vLLM's derived max_model_len (None: newest release, or no key).

        RoPE's factor multiplies it, except for llama3 and longrope, and from 0.30 for yarn; before, yarn started from
        its original length. Source: vLLM `config.model._get_and_verify_max_len` (0.8.5 to 0.33).
        """
        if self.stated_tokens is None or self.rope.kind in LENGTH_NOT_SCALED:
            return self.stated_tokens
        factor = self.rope.factor or 1.0
        if self.rope.kind != "yarn":
            return int(self.stated_tokens * factor)
        if version is None or version >= YARN_LENGTH_STATED_SINCE:
            return self.stated_tokens
        return int((self.rope.original_positions or self.stated_tokens) * factor)

    def default(self, version: Version | None = None) -> int | None:
        """Return the length vLLM takes when none is asked for; longrope starts from the original one since 0.11.1."""
        short = version is None or version >= LONGROPE_STARTS_SHORT_SINCE
        if self.rope.kind == "longrope" and short and self.outside_original_tokens is not None:
            return self.outside_original_tokens
        return self.limit(version)


def read_context_length(keys: ConfigKeys, rope: Rope) -> ContextLength:
    """Return the smallest length that config.json or its class states; `model_max_length` wins over all others.

    Source: vLLM `ModelArchConfigConvertorBase.derive_max_model_len_and_key`.
    """
    stated = [(tokens, key) for key in LENGTH_KEYS if (tokens := keys.size(key)) is not None]
    override = keys.size("model_max_length")
    tokens, key = (
        (override, "model_max_length") if override else min(stated, default=(None, ""), key=lambda item: item[0])
    )
    return ContextLength(
        stated_tokens=tokens,
        key=key,
        rope=rope,
        outside_original_tokens=keys.size("original_max_position_embeddings"),
    )
