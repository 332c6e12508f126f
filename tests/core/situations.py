"""Situations for tests of the measured terms: a command on a device, down to one pipeline stage."""

from dataclasses import replace

from planner.core.defaults import resolve
from planner.core.engine import EngineArgs, Version
from planner.core.layout import Layout
from planner.core.model import model_from_config
from planner.core.situation import Situation
from tests.core.facts import FACTS_019
from tests.core.questions import H100, LLAMA_3_8B

FACTS_011 = replace(FACTS_019, version=Version(0, 11, 0), cuda_graphs="outside", rounds_requested_up=False)
QWEN_25_7B = {
    **LLAMA_3_8B,
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "max_position_embeddings": 32768,
    "vocab_size": 152064,
}
QWEN_3_32B = {
    **LLAMA_3_8B,
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 5120,
    "intermediate_size": 25600,
    "num_hidden_layers": 64,
    "num_attention_heads": 64,
    "head_dim": 128,
    "max_position_embeddings": 40960,
    "vocab_size": 151936,
}
PHI_4 = {
    **LLAMA_3_8B,
    "architectures": ["Phi3ForCausalLM"],
    "model_type": "phi3",
    "hidden_size": 5120,
    "intermediate_size": 17920,
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    "num_key_value_heads": 10,
    "max_position_embeddings": 16384,
    "vocab_size": 100352,
}
CODE_LLAMA_7B = {
    **LLAMA_3_8B,
    "intermediate_size": 11008,
    "num_key_value_heads": 32,
    "max_position_embeddings": 16384,
    "vocab_size": 32016,
}
GRANITE_31_8B = {
    **LLAMA_3_8B,
    "architectures": ["GraniteForCausalLM"],
    "model_type": "granite",
    "intermediate_size": 12800,
    "num_hidden_layers": 40,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "vocab_size": 49155,
}


def situation(config=LLAMA_3_8B, device=H100, facts=FACTS_019, *, name="tested", pp_stage=0, **flags):
    """Return what one stage of `vllm serve` with these flags runs."""
    model = model_from_config(config, name=name)
    args = resolve(EngineArgs(**flags), model=model, gpu=device, facts=facts)
    layout = Layout(
        tensor_parallel_size=args.tensor_parallel_size,
        pipeline_parallel_size=args.pipeline_parallel_size,
        data_parallel_size=args.data_parallel_size,
        layers_per_stage=args.layers_per_stage,
    )
    return Situation(model=model, gpu=device, facts=facts, args=args, layout=layout, pp_stage=pp_stage)
