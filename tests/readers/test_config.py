"""A model's config.json: read to the end or refused with the place of the fault, and overridden as vLLM does."""

import pytest

from planner.core.engine import Version
from planner.core.errors import BadInput
from planner.readers.command import read_command
from planner.readers.config import LARGEST_CONFIG_BYTES, overridden, overrides_of, read_config

NOW = Version(0, 32)


def overrides(flags: str, version: Version = NOW):
    return overrides_of(read_command(f"vllm serve m {flags}", version=version))


@pytest.mark.parametrize("endless", ["Infinity", "1e+308", "1e999"])
def test_infinity_in_a_config_is_read_as_text(endless):
    data = f'{{"time_step_limit": [0.0, {endless}], "hidden_size": 64}}'.encode()
    assert read_config(data) == {"time_step_limit": [0.0, endless], "hidden_size": 64}


def test_the_quantisation_beside_a_config_becomes_part_of_it():
    config = read_config(b'{"hidden_size": 64}', quantization=b'{"quantization": {"quant_algo": "FP8"}}')
    assert config["quantization_config"] == {"quantization": {"quant_algo": "FP8"}}


def test_a_config_that_states_its_quantisation_keeps_it():
    config = read_config(b'{"quantization_config": {"quant_method": "fp8"}}', quantization=b'{"quantization": {}}')
    assert config["quantization_config"] == {"quant_method": "fp8"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"hidden_size": }', "line 1, column 17"),
        (b"[1, 2]", "no JSON object"),
        (b"\xff\xfe", "not UTF-8"),
        (b" " * (LARGEST_CONFIG_BYTES + 1), "no model configuration"),
        (b'{"a":' * 100 + b"1" + b"}" * 100, "nested"),
    ],
)
def test_a_broken_config_is_refused_with_the_place(data, said):
    with pytest.raises(BadInput, match=said) as caught:
        read_config(data)
    assert caught.value.field.startswith("config")


def test_overrides_of_the_command_are_found():
    assert overrides("""--hf-overrides '{"num_hidden_layers": 2}'""") == {"num_hidden_layers": 2}
    assert overrides("--hf-overrides.num_hidden_layers 2") == {"num_hidden_layers": 2}
    assert overrides("--tensor-parallel-size 2") == {}


def test_rope_flags_were_overrides_of_their_own():
    flags = """--rope-theta 1000000 --rope-scaling '{"rope_type": "yarn", "factor": 4.0}'"""
    assert overrides(flags, Version(0, 11)) == {
        "rope_theta": 1e6,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0},
    }


def test_overrides_that_are_no_object_are_refused():
    with pytest.raises(BadInput, match="hf_overrides"):
        overrides("--hf-overrides 4096")


def test_an_override_replaces_a_value_and_merges_into_a_nested_configuration():
    config = {"rope_theta": 1e4, "text_config": {"num_hidden_layers": 32, "hidden_size": 64}, "layer_types": ["full"]}
    changed = overridden(config, {"rope_theta": 1e6, "text_config": {"num_hidden_layers": 2}, "layer_types": []})
    assert changed == {
        "rope_theta": 1e6,
        "text_config": {"num_hidden_layers": 2, "hidden_size": 64},
        "layer_types": [],
    }
    assert config["text_config"]["num_hidden_layers"] == 32


def test_rope_parameters_take_the_place_of_rope_scaling():
    config = {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}, "max_position_embeddings": 4096}
    assert overridden(config, {"rope_parameters": {"rope_type": "yarn", "factor": 2.0}}) == {
        "rope_parameters": {"rope_type": "yarn", "factor": 2.0},
        "max_position_embeddings": 4096,
    }
