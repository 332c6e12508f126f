"""A pasted vLLM command: read as that release's own parser reads it, or refused with the flag and the fix."""

import pytest

from planner.core.engine import EngineArgs, Version
from planner.core.errors import BadInput
from planner.readers.command import format_command, given_fields, read_command, read_fields

NOW = Version(0, 32)
POST_MORTEM = r"""
vllm serve meta-llama/Meta-Llama-3-70B-Instruct \
  --dtype float16 --tensor-parallel-size 4 \
  --gpu-memory-utilization 0.90 --max-model-len 8192
"""


def read(flags: str, version: Version = NOW) -> EngineArgs:
    return read_command(f"vllm serve some/model {flags}", version=version)


def refusal(flags: str, version: Version = NOW) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read(flags, version)
    return caught.value


def test_the_command_of_the_post_mortem_is_read():
    assert read_command(POST_MORTEM, version=NOW) == EngineArgs(
        model="meta-llama/Meta-Llama-3-70B-Instruct",
        dtype="float16",
        tensor_parallel_size=4,
        gpu_memory_utilization=0.9,
        max_model_len=8192,
    )


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve some/model --tensor-parallel-size 2",
        "vllm serve some/model --tensor_parallel_size=2",
        "vllm serve some/model -tp 2",
        "vllm serve some/model -tp=2",
        "vllm serve --tensor-parallel-size 2 some/model",
        "vllm serve --model some/model -tp 2",
        "vllm serve some/model -tp 8 -tp 2",
        "vllm serve some/model --tensor-parallel 2",
        "vllm serve some/model —tensor-parallel-size 2",
        "nohup vllm serve some/model -tp 2 > server.log 2>&1 &",
        "# two GPUs\nvllm serve some/model \\\n  # each with half the heads\n  -tp 2",
        "cd /srv; /opt/vllm/bin/vllm serve some/model -tp 2 | tee log; echo done",
        "python3 -u -m vllm.entrypoints.openai.api_server --model=some/model -tp 2",
        "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.11.0 --model some/model -tp 2",
        ["vllm", "serve", "some/model", "-tp", "2"],
    ],
)
def test_the_same_command_may_be_written_in_many_ways(text):
    assert read_command(text, version=NOW) == EngineArgs(model="some/model", tensor_parallel_size=2)


def test_variables_in_front_are_kept_and_filled_in():
    args = read_command(
        "export VLLM_PP_LAYER_PARTITION=30,50; SIZE=2 MODEL=some/model env CUDA_VISIBLE_DEVICES=0,1 "
        "vllm serve $MODEL -pp ${SIZE}",
        version=NOW,
    )
    assert (args.model, args.pipeline_parallel_size) == ("some/model", 2)
    assert args.env("VLLM_PP_LAYER_PARTITION") == "30,50"
    assert args.env("CUDA_VISIBLE_DEVICES") == "0,1"


def test_keys_and_tokens_are_never_kept():
    args = read_command("HF_TOKEN=hf_secret vllm serve m --api-key secret --hf-token=secret", version=NOW)
    assert "secret" not in repr(args)
    assert args.env("HF_TOKEN") == "***"


@pytest.mark.parametrize(
    ("written", "tokens"),
    [("8192", 8192), ("40k", 40_000), ("40K", 40_960), ("25.6k", 25_600), ("1m", 10**6), ("1M", 2**20)],
)
def test_lengths_may_carry_vllm_s_suffixes(written, tokens):
    assert read(f"--max-model-len {written}").max_model_len == tokens


@pytest.mark.parametrize("written", ["-1", "auto", "AUTO"])
def test_minus_one_and_auto_let_vllm_fit_the_length(written):
    assert read(f"--max-model-len {written}").max_model_len == "auto"


def test_fitting_the_length_came_with_0_14():
    assert "came with vLLM 0.14.0" in refusal("--max-model-len auto", Version(0, 13)).fix


def test_a_capital_suffix_takes_no_decimals():
    assert refusal("--max-num-batched-tokens 1.5K").field == "max_num_batched_tokens"


def test_the_suggestion_that_vllm_logs_is_a_flag_cut_short():
    assert read("--kv-cache-memory=1073741824").kv_cache_memory_bytes == 1 << 30


def test_a_flag_cut_too_short_could_be_several():
    assert "--max-num-seqs" in refusal("--max-num 4").message


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        ("--enable-prefix-caching", True),
        ("--no-enable-prefix-caching", False),
        ("--enable-prefix-caching --no-enable-prefix-caching", False),
        ("", None),
    ],
)
def test_a_switch_is_on_off_or_not_given(flags, value):
    assert read(flags).enable_prefix_caching is value


def test_a_switch_takes_no_value():
    assert "no value" in refusal("--enforce-eager true").fix
    assert refusal("--enforce-eager=true").field == "enforce_eager"


def test_switching_off_came_later_than_some_switches():
    assert read("--no-enforce-eager", Version(0, 9)).enforce_eager is False
    assert "from vLLM 0.9.0 on" in refusal("--no-enforce-eager", Version(0, 8, 5)).message


def test_several_values_follow_one_flag():
    args = read("--cudagraph-capture-sizes 1 2 4 --served-model-name chat 'chat large'")
    assert args.cudagraph_capture_sizes == (1, 2, 4)
    assert args.served_model_name == "chat 'chat large'"


@pytest.mark.parametrize(
    "flags",
    [
        """--compilation-config '{"cudagraph_mode": "PIECEWISE", "pass_config": {"fuse_attn": true}}'""",
        "-cc.cudagraph_mode PIECEWISE -cc.pass_config.fuse_attn=true",
        "--compilation_config.cudagraph_mode=PIECEWISE --compilation-config.pass_config.fuse_attn true",
    ],
)
def test_json_may_be_given_key_by_key(flags):
    assert read(flags).compilation_config == '{"cudagraph_mode": "PIECEWISE", "pass_config": {"fuse_attn": true}}'


def test_lists_in_json_grow_by_a_plus():
    args = read("-cc.cudagraph_capture_sizes+ 1,2 -cc.cudagraph_capture_sizes+=4")
    assert args.compilation_config == '{"cudagraph_capture_sizes": ["1", "2", "4"]}'


def test_capital_o_is_the_level_that_the_release_means():
    assert read("-O2").optimization_level == 2
    assert read("-O=1").optimization_level == 1
    assert read("-O 0").optimization_level == 0
    assert read("-O3", Version(0, 11)).compilation_config == '{"level": 3}'


def test_broken_json_is_shown_with_its_place():
    assert "at character 8" in refusal("""--compilation-config '{"mode":}'""").fix


def test_the_flags_of_speculation_are_one_configuration():
    args = read("--spec-method ngram --spec-tokens 3")
    assert args.speculative_config == '{"method": "ngram", "num_speculative_tokens": 3}'


def test_a_misspelt_flag_is_named_with_its_nearest():
    fault = refusal("--tensor-paralel-size 4")
    assert (fault.field, fault.fix) == ("tensor_paralel_size", "did you mean --tensor-parallel-size?")


@pytest.mark.parametrize(
    ("flags", "version", "lived"),
    [
        ("--swap-space 4", NOW, "from vLLM 0.6.6 until just before 0.18.0"),
        ("--num-scheduler-steps 8", NOW, "until just before 0.10.1"),
        ("--task generate", NOW, "until just before 0.13.0"),
        ("--max-seq-len-to-capture 8192", NOW, "until just before 0.11.0"),
        ("--speculative-model x", Version(0, 9), "until just before 0.8.5"),
        ("--kv-cache-memory-bytes 1G", Version(0, 10, 1), "from vLLM 0.10.2 on"),
        ("--attention-backend FLASHINFER", Version(0, 12), "from vLLM 0.13.0 on"),
        ("-ep", Version(0, 13), "from vLLM 0.14.0 on"),
    ],
)
def test_a_flag_of_another_release_is_named_with_its_releases(flags, version, lived):
    assert lived in refusal(flags, version).message


def test_a_flag_lives_in_its_own_release():
    assert read("--swap-space 4", Version(0, 17, 1)).swap_space == 4.0


@pytest.mark.parametrize(
    ("flags", "field", "allowed"),
    [
        ("--max-num-seqs many", "max_num_seqs", "a whole number"),
        ("--max-num-seqs 0", "max_num_seqs", "1 or more"),
        ("--max-num-seqs 3000000000", "max_num_seqs", "2,147,483,647 or less"),
        ("--gpu-memory-utilization nan", "gpu_memory_utilization", "a number"),
        ("--dtype int8", "dtype", "one of auto, half, float16, bfloat16, float, float32"),
        ("--tensor-parallel-size", "tensor_parallel_size", "a value after --tensor-parallel-size"),
        ("--tensor-parallel-size --enforce-eager", "tensor_parallel_size", "a value after"),
        ("--tensor-parallel-size 99999999999999999999", "tensor_parallel_size", "a whole number"),
        ("--optimization-level 7", "optimization_level", "from 0 to 3"),
        ("--tensor-parallel-size.x 4", "tensor_parallel_size", "write --tensor-parallel-size VALUE"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(flags, field, allowed):
    fault = refusal(flags)
    assert fault.field == field
    assert allowed in fault.fix


def test_a_value_of_another_release_is_dated():
    assert "nvfp4 exists from vLLM 0.20.0 on" in refusal("--kv-cache-dtype nvfp4", Version(0, 19)).fix


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "command"),
        ("python train.py --lr 3", "command"),
        ("vllm serve 'some/model", "command"),
        ("vllm serve some/model other/model", "command"),
        ("vllm serve", "model"),
        ("vllm serve $MODEL -tp 2", "model"),
        ("vllm serve " + "x" * 100_000, "command"),
    ],
)
def test_what_is_no_command_is_said_to_be_none(text, field):
    with pytest.raises(BadInput) as caught:
        read_command(text, version=NOW)
    assert caught.value.field == field


def test_fields_of_a_form_are_read_like_flags():
    fields = {"tensor-parallel-size": "4", "max_model_len": "32k", "enforce_eager": "on", "dtype": "", "seed": None}
    assert read_fields(fields, version=NOW, model="m") == EngineArgs(
        model="m", tensor_parallel_size=4, max_model_len=32_000, enforce_eager=True
    )


def test_fields_of_json_are_read_like_flags():
    fields = {
        "gpu_memory_utilization": 0.9,
        "cudagraph_capture_sizes": [1, 2, 4],
        "enable_prefix_caching": False,
        "hf_overrides": {"max_position_embeddings": 4096},
        "max_num_seqs": 64.0,
    }
    args = read_fields(fields, version=NOW, model="m")
    assert args.gpu_memory_utilization == 0.9
    assert args.cudagraph_capture_sizes == (1, 2, 4)
    assert args.enable_prefix_caching is False
    assert args.max_num_seqs == 64
    assert dict(args.other) == {"hf_overrides": '{"max_position_embeddings": 4096}'}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tensor_parallel": 4}, "tensor_parallel"),
        ({"enforce_eager": "perhaps"}, "enforce_eager"),
        ({"max_num_seqs": True}, "max_num_seqs"),
        ({"max_num_seqs": [1]}, "max_num_seqs"),
        ({"swap_space": 4}, "swap_space"),
        ({"usage": "batch"}, "usage"),
    ],
)
def test_a_bad_field_is_named(fields, field):
    with pytest.raises(BadInput) as caught:
        read_fields(fields, version=NOW)
    assert caught.value.field == field


def test_a_command_is_written_so_that_a_shell_reads_it_back():
    args = read_command(
        "VLLM_USE_V1=1 vllm serve m -tp 2 --max-model-len -1 --no-enable-prefix-caching --enforce-eager "
        """--served-model-name a 'b c' --hf-overrides '{"a": {"b": 1}}' --middleware x.y --middleware=z""",
        version=NOW,
    )
    written = format_command(args)
    assert written == (
        "VLLM_USE_V1=1 vllm serve m --tensor-parallel-size 2 --max-model-len auto --enforce-eager "
        "--no-enable-prefix-caching --served-model-name a 'b c' "
        """--hf-overrides '{"a": {"b": 1}}' --middleware=x.y --middleware=z"""
    )
    assert read_command(written, version=NOW) == args


def test_given_fields_read_back_as_the_same_arguments():
    args = read("-tp 2 --cudagraph-capture-sizes 1 2 --api-key k --no-async-scheduling -cc.mode 3 --hf-token")
    assert read_fields(given_fields(args), version=NOW, model=args.model) == args
