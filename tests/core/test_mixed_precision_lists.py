"""ModelOpt's mixed precision says each layer's algorithm by name; the catalog shortens such lists to patterns."""

from planner.core.model import model_from_config
from tests.engine.shapes_hybrid import HYBRIDS

FP4, FP8 = {"quant_algo": "W4A16_NVFP4", "group_size": 16}, {"quant_algo": "FP8"}
ALGORITHMS = {"linear_attn.out_proj": FP8, "mlp.gate_proj": FP4, "mlp.up_proj": FP4, "mlp.down_proj": FP4}


def model(numbers):
    layers = {
        f"model.layers.{number}.{name}": algorithm for number in numbers for name, algorithm in ALGORITHMS.items()
    }
    stated = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    return model_from_config({**HYBRIDS["qwen3_5"], "quantization_config": stated}, name="mixed")


def test_a_shortened_list_says_the_same_as_the_whole_one():
    assert model("*").layers == model(range(5)).layers


def test_a_layer_that_the_list_leaves_out_stays_as_it_is():
    methods = [
        {module.scheme is not None for module in layer.modules if module.name == "mlp.down_proj"}
        for layer in model([1]).layers
    ]
    assert methods == [{False}, {True}, {False}, {False}, {False}]
