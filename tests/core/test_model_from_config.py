"""A config.json as a model: what counts, what is assumed, and what is said to be unknown, with the key that decides."""

import json

import pytest

from planner.catalog.model_files import find_model
from planner.core.engine import Version
from planner.core.errors import BadInput, Unknown
from planner.core.model import model_facts, model_from_config
from tests.engine.shapes import FAMILIES, LLAMA_31_8B, LLAMA_32_1B, MISTRAL_7B_V03, OPT_125M, QWEN2_7B, QWEN3_8B
from tests.engine.shapes_hybrid import WINDOWS


def read(config, **keys):
    return model_from_config({**config, **keys}, name="tried")


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


class TestWhatIsStated:
    def test_dimensions_are_taken_as_stated(self):
        model = read(QWEN3_8B)
        assert (model.architecture, model.dtype, model.num_layers) == ("Qwen3ForCausalLM", "bfloat16", 36)
        assert (model.num_attention_heads, model.num_kv_heads, model.head_dim) == (32, 8, 128)

    def test_heads_may_be_wider_than_the_hidden_state(self):
        """Qwen3-0.6B: 16 heads of 128 over a hidden state of 1,024."""
        assert read(QWEN3_8B, hidden_size=1024, num_attention_heads=16).head_dim == 128

    def test_a_nested_text_config_counts(self):
        nested = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "text_config": without(LLAMA_31_8B)}
        assert read(nested) == read(LLAMA_31_8B)

    def test_the_model_type_names_the_architecture_where_none_is_stated(self):
        assert read(without(MISTRAL_7B_V03, "architectures")).architecture == "MistralForCausalLM"

    def test_gpt_2_keeps_its_own_names(self):
        model = read(FAMILIES["gpt2"])
        assert (model.hidden_size, model.num_layers, model.num_attention_heads) == (512, 3, 8)
        assert model.intermediate_size == 4 * 512

    def test_an_early_phi_2_is_the_phi_2_of_today(self):
        """Its first config.json used GPT-2's names and `rotary_dim` (model_type phi-msft)."""
        early = {
            "architectures": ["PhiForCausalLM"],
            "model_type": "phi-msft",
            "n_embd": 2560,
            "n_head": 32,
            "n_head_kv": None,
            "n_inner": None,
            "n_layer": 32,
            "n_positions": 2048,
            "rotary_dim": 32,
            "tie_word_embeddings": False,
            "torch_dtype": "float16",
            "vocab_size": 51200,
        }
        assert read(early).parameters == 2_779_683_840
        assert read(early).rope.rotary_dim == 32

    def test_infinity_beside_the_point_is_harmless(self):
        config = json.loads(json.dumps({**LLAMA_31_8B, "time_step_limit": [0.0, float("inf")]}))
        assert read(config) == read(LLAMA_31_8B)

    @pytest.mark.parametrize(
        ("stated", "dtype"), [("torch.float16", "float16"), (None, "float32"), ("half", "float16")]
    )
    def test_the_dtype_of_the_checkpoint(self, stated, dtype):
        assert read(LLAMA_31_8B, torch_dtype=stated).dtype == dtype


class TestWhatIsAssumed:
    """Defaults of transformers' configuration classes."""

    def test_llama_without_kv_heads_is_multi_head(self):
        assert read(without(LLAMA_31_8B, "num_key_value_heads")).num_kv_heads == 32

    def test_mistral_without_kv_heads_has_eight(self):
        assert read(without(MISTRAL_7B_V03, "num_key_value_heads")).num_kv_heads == 8

    def test_mistral_without_the_key_slides(self):
        assert windows(read(without(MISTRAL_7B_V03, "sliding_window"))) == {4096}

    def test_opt_is_tied_unless_it_says_otherwise(self):
        assert read(OPT_125M).tie_word_embeddings
        assert not read(OPT_125M, tie_word_embeddings=False).tie_word_embeddings

    def test_null_hides_a_default(self):
        assert read(MISTRAL_7B_V03, num_key_value_heads=None).num_kv_heads == 32


class TestContextLength:
    def test_the_smallest_key_decides(self):
        model = read(LLAMA_31_8B, max_position_embeddings=131072, seq_length=4096)
        assert (model.derived_max_model_len, model.derived_max_model_len_key) == (4096, "seq_length")

    def test_model_max_length_wins_over_all(self):
        model = read(FAMILIES["cohere"], model_max_length=131072)
        assert (model.derived_max_model_len, model.derived_max_model_len_key) == (131072, "model_max_length")

    def test_bloom_states_none(self):
        assert read(without(FAMILIES["bloom"], "max_position_embeddings")).derived_max_model_len is None

    def test_llama3_scaling_leaves_the_length_alone(self):
        assert read(LLAMA_31_8B).derived_max_model_len == 131072

    @pytest.mark.parametrize("kind", ["linear", "dynamic"])
    def test_other_scaling_multiplies_it(self, kind):
        scaling = {"rope_type": kind, "factor": 4.0}
        assert read(LLAMA_31_8B, max_position_embeddings=4096, rope_scaling=scaling).derived_max_model_len == 16384

    def test_yarn_multiplies_the_original_length_before_0_30_only(self):
        """vLLM `_get_and_verify_max_len`: 0.29 takes 32768 x 4, 0.30 and later what the config states."""
        scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
        context = read(QWEN2_7B, max_position_embeddings=32768, rope_scaling=scaling).context
        assert (context.limit(Version(0, 29)), context.limit(Version(0, 30))) == (131072, 32768)

    def test_longrope_starts_from_the_original_length(self):
        """vLLM since 0.11: the default is the original length, the limit stays the stretched one."""
        context = read(FAMILIES["phi3, long by longrope"]).context
        assert (context.default(), context.limit()) == (256, 768)
        assert context.default(Version(0, 11, 0)) == 768


MOE = {"architectures": ["FooMoeForCausalLM"], "model_type": "foo_moe", "num_local_experts": 8}


def windows(model):
    return {layer.caches[0].span for layer in model.layers}


@pytest.mark.parametrize(
    ("config", "field", "words"),
    [
        ({**LLAMA_31_8B, **MOE}, "architectures", "mixture of experts"),
        ({**LLAMA_31_8B, "quantization_config": {"quant_method": "hqq"}}, "quantization_config", "hqq"),
        ({**QWEN2_7B, "use_sliding_window": True, "max_window_layers": 20}, "max_window_layers", "some layers only"),
        ({**LLAMA_31_8B, "vision_config": {"hidden_size": 1}}, "vision_config", "vision"),
        ({**LLAMA_31_8B, "is_encoder_decoder": True}, "is_encoder_decoder", "encoder-decoder"),
        ({**QWEN2_7B, "is_causal": False}, "is_causal", "bidirectional"),
        ({**LLAMA_31_8B, "kv_lora_rank": 512}, "kv_lora_rank", "latent"),
        ({**LLAMA_31_8B, "num_experts": 8}, "num_experts", "mixture of experts"),
        ({**LLAMA_31_8B, "rope_scaling": {"rope_type": "ntk", "factor": 2.0}}, "rope_scaling", "ntk"),
        ({**LLAMA_31_8B, "architectures": ["FooForCausalLM"]}, "architectures", "FooForCausalLM"),
        ({**without(LLAMA_31_8B, "architectures"), "model_type": "foo"}, "model_type", "foo"),
        ({}, "model_type", "none stated"),
        ({**LLAMA_31_8B, "torch_dtype": "float8_e4m3fn"}, "torch_dtype", "float8_e4m3fn"),
        ({**QWEN2_7B, "head_dim": 64}, "head_dim", "head_dim 64"),
        ({**FAMILIES["stablelm"], "qk_layernorm": True}, "qk_layernorm", "qk_layernorm"),
    ],
)
def test_what_is_not_planned_is_named_with_the_key_that_decides(config, field, words):
    with pytest.raises(Unknown) as error:
        read(config)
    assert error.value.field == field
    assert error.value.message.startswith(("unknown architecture: ", "unknown quantisation: "))
    assert words in error.value.message


def test_layers_stated_full_make_a_window_harmless():
    """vLLM takes the window from the config only where `layer_types` does not say that all layers are full."""
    full = ["full_attention"] * 36
    assert windows(read(QWEN3_8B, sliding_window=4096, use_sliding_window=True, layer_types=full)) == {None}


def test_a_window_holds_for_every_layer_unless_their_types_say_otherwise():
    """vLLM 0.32 `EngineArgs.create_engine_config`, and `LlamaAttention` for types of layers."""
    in_turn = ["sliding_attention", "full_attention"] * 16
    assert windows(read(LLAMA_31_8B, sliding_window=4096)) == {4096}
    model = read(LLAMA_31_8B, sliding_window=4096, layer_types=in_turn)
    assert [layer.caches[0].span for layer in model.layers[:3]] == [4096, None, 4096]


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"hidden_size": 0}, "hidden_size"),
        ({"num_hidden_layers": True}, "num_hidden_layers"),
        ({"num_attention_heads": 32.0}, "num_attention_heads"),
        ({"vocab_size": float("inf")}, "vocab_size"),
        ({"intermediate_size": [1, 2]}, "intermediate_size"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"max_position_embeddings": -1}, "max_position_embeddings"),
        ({"architectures": "LlamaForCausalLM"}, "architectures"),
        ({"num_key_value_heads": 5}, "num_key_value_heads"),
        ({"hidden_size": 4000, "num_attention_heads": 24, "num_key_value_heads": 24}, "head_dim"),
        ({"rope_scaling": "linear"}, "rope_scaling"),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling.factor"),
        ({"rope_scaling": {"type": "linear", "factor": float("nan")}}, "rope_scaling.factor"),
        ({"partial_rotary_factor": 1.5}, "partial_rotary_factor"),
        ({"layer_types": "full_attention"}, "layer_types"),
        ({"torch_dtype": 16}, "torch_dtype"),
        ({"text_config": "none"}, "text_config"),
    ],
)
def test_a_wrong_type_is_bad_input_that_names_its_key(keys, field):
    with pytest.raises(BadInput) as error:
        read(LLAMA_31_8B, **keys)
    assert error.value.field == field
    assert error.value.fix


def test_a_config_that_is_no_object_is_bad_input():
    with pytest.raises(BadInput):
        model_from_config(["LlamaForCausalLM"], name="tried")


class TestFacts:
    """What any architecture states, for display."""

    def test_a_planned_model_has_its_parameters_and_no_reason(self):
        facts = model_facts(LLAMA_32_1B)
        assert (facts.parameters, facts.unplanned) == (1_235_814_400, "")

    def test_an_unplanned_one_keeps_its_figures_and_says_why(self):
        facts = model_facts({**LLAMA_31_8B, **MOE, "num_experts_per_tok": 2})
        assert (facts.num_layers, facts.num_experts, facts.experts_per_token) == (32, 8, 2)
        assert facts.parameters is None
        assert "mixture of experts" in facts.unplanned

    @pytest.mark.parametrize("config", [{}, {"num_hidden_layers": "many"}, {"text_config": None}, [1]])
    def test_nothing_is_too_odd_to_show(self, config):
        assert model_facts(config).num_layers is None


def test_a_window_of_cohere_counts_the_token_itself_since_it_does_in_vllm():
    """vLLM 0.29 `models.commandr` passes sliding_window + 1; 0.28 passed it as it is."""
    cache = read(WINDOWS["cohere2"]).layers[0].caches[0]
    assert [cache.span_in(Version(0, minor)) for minor in (28, 29)] == [256, 257]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Qwen/Qwen-7B", 7_721_324_544),
        ("Qwen/Qwen-72B-Chat", 72_287_920_128),
        ("baichuan-inc/Baichuan2-7B-Chat", 7_505_973_248),
    ],
)
def test_families_that_the_judging_release_no_longer_serves_come_to_the_published_count(name, parameters):
    """The totals that the safetensors index of each repository states (huggingface.co, "Model size")."""
    assert find_model(name).parameters == parameters
