"""`manage.py estimate`, as a CI job runs it: exit codes, JSON on stdout, words for people, nothing else needed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

PROJECT = Path(__file__).resolve().parents[2]
LLAMA_70B = "meta-llama/Meta-Llama-3-70B-Instruct"
POST_MORTEM = (
    f"vllm serve {LLAMA_70B} --dtype float16 --tensor-parallel-size 4 "
    "--gpu-memory-utilization 0.90 --max-model-len 8192"
).split()
A100 = ("--gpu", "a100-sxm4-80gb", "--vllm-version", "0.32.0")
OFFLINE = {"HF_HUB_OFFLINE": "1", "PATH": os.environ["PATH"], "HOME": "/nonexistent", "PLANNER_HOME": "/nonexistent"}

BYTES = {"type": "integer"}
TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
REASON = {
    "type": "object",
    "required": ["rule", "field", "message", "remedy"],
    "properties": dict.fromkeys(("rule", "field", "message", "remedy"), TEXT),
}
TERM = {
    "type": "object",
    "required": ["name", "bytes", "low_bytes", "high_bytes", "formula", "source", "inside_budget"],
    "properties": {
        "name": {"enum": ["weights", "activation", "non_torch", "cuda_graphs", "kv_cache", "outside_budget"]},
        **dict.fromkeys(("bytes", "low_bytes", "high_bytes"), BYTES),
        **dict.fromkeys(("formula", "source"), TEXT),
        "inside_budget": {"type": "boolean"},
    },
}
DOCUMENT = {
    "type": "object",
    "required": ["verdict", "summary", "reasons", "engine", "ranks", "kv_cache", "capacity"],
    "properties": {
        "verdict": {"enum": ["fits", "does_not_fit", "refused", "unknown"]},
        "summary": TEXT,
        "reasons": {"type": "array", "items": REASON},
        "engine": {"type": ["object", "null"], "required": ["version"]},
        "ranks": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["rank", "pp_stage", "terms"],
                "properties": {"rank": COUNT, "pp_stage": COUNT, "terms": {"type": "array", "items": TERM}},
            },
        },
        "kv_cache": {
            "type": ["object", "null"],
            "required": [
                *("available_bytes", "low_bytes", "high_bytes", "bytes_per_token", "bytes_per_token_per_rank"),
                *("block_size", "num_gpu_blocks", "tokens", "max_concurrency", "low_tokens", "high_tokens"),
            ],
        },
        "capacity": {"type": ["object", "null"]},
    },
}


def run(*arguments: str, command: list[str] = POST_MORTEM, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "estimate", *arguments, "--", *command],
        cwd=PROJECT,
        env=OFFLINE | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def answer(*arguments: str, command: list[str] = POST_MORTEM) -> tuple[int, dict]:
    done = run("--json", *arguments, command=command)
    found = json.loads(done.stdout)
    if "error" not in found:
        jsonschema.validate(found, DOCUMENT)
    return done.returncode, found


def with_flags(*flags: str) -> list[str]:
    return [*POST_MORTEM, *flags]


def test_the_post_mortem_boots_and_every_byte_of_its_gpus_is_told():
    code, found = answer(*A100, "--gpu-count", "4", "--gpu-memory-gib", "79.25")
    assert (code, found["verdict"]) == (0, "fits")
    assert [(rank["rank"], rank["pp_stage"]) for rank in found["ranks"]] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    for rank in found["ranks"]:
        inside = sum(term["bytes"] for term in rank["terms"] if term["inside_budget"])
        outside = next(term["bytes"] for term in rank["terms"] if term["name"] == "outside_budget")
        assert inside == rank["requested_bytes"]
        assert inside + outside == round(79.25 * 2**30)
    assert found["engine"]["version"] == "0.32.0"
    assert found["engine"]["tensor_parallel_size"] == 4


def test_the_post_mortem_has_the_published_bytes_of_a_token():
    """80 layers x 2 x 8 heads x 128 x 2 bytes = 327,680; a quarter of it on each of four ranks."""
    _, found = answer(*A100)
    assert found["kv_cache"]["bytes_per_token"] == 327_680
    assert found["kv_cache"]["bytes_per_token_per_rank"] == 81_920


def test_what_cannot_fit_has_a_reason_and_exit_code_1():
    code, found = answer("--gpu", "a100-sxm4-80gb", command=["vllm", "serve", LLAMA_70B])
    assert (code, found["verdict"]) == (1, "does_not_fit")
    assert found["reasons"][0]["remedy"]


def test_what_vllm_refuses_names_the_rule_and_exit_code_1():
    code, found = answer(*A100, command=with_flags("--tensor-parallel-size", "6"))
    assert (code, found["verdict"]) == (1, "refused")
    assert found["reasons"][0]["rule"] == "heads_tp"


def test_the_tutorial_s_length_is_refused_with_the_way_out():
    command = [
        "vllm",
        "serve",
        "meta-llama/Llama-2-70b-chat-hf",
        "-tp",
        "4",
        "--max-model-len",
        "32768",
        "--kv-cache-dtype",
        "fp8",
    ]
    code, found = answer(*A100, command=command)
    assert (code, found["verdict"]) == (1, "refused")
    assert found["reasons"][0]["rule"] == "max_model_len_gt_derived"
    assert "4096" in found["reasons"][0]["remedy"]


@pytest.mark.parametrize(
    ("arguments", "command", "field"),
    [
        (A100, with_flags("--tensor-paralel-size", "4"), "tensor_paralel_size"),
        (A100, with_flags("--swap-space", "4"), "swap_space"),
        (A100, with_flags("--max-num-seqs", "many"), "max_num_seqs"),
        (A100, ["vllm", "serve"], "model"),
        (A100, ["python", "train.py"], "command"),
        ((*A100, "--gpu-count", "none"), POST_MORTEM, "gpu_count"),
        ((*A100, "--gpu-memory-gib", "-1"), POST_MORTEM, "gpu_memory_gib"),
        ((*A100, "--config", "/nonexistent/config.json"), POST_MORTEM, "config"),
        ((*A100, "--request", "chat"), POST_MORTEM, "requests"),
        ((*A100, "--gpus", "4"), POST_MORTEM, "arguments"),
        (("--vllm-version", "0.32.0"), POST_MORTEM, "gpu"),
        (("--gpu", "a100-sxm4-80gb", "--vllm-version", "newest"), POST_MORTEM, "vllm_version"),
    ],
)
def test_bad_input_is_named_in_json_with_exit_code_2(arguments, command, field):
    code, found = answer(*arguments, command=command)
    assert code == 2
    assert found["error"]["field"] == field
    assert found["error"]["fix"]


@pytest.mark.parametrize(
    ("arguments", "command", "field"),
    [
        (A100, ["vllm", "serve", "nobody/nothing"], "model"),
        (("--gpu", "z9000"), POST_MORTEM, "gpu"),
        (("--gpu", "a100-sxm4-80gb", "--vllm-version", "0.6.6"), ["vllm", "serve", LLAMA_70B], "vllm_version"),
    ],
)
def test_what_nobody_here_knows_is_a_verdict_with_exit_code_3(arguments, command, field):
    code, found = answer(*arguments, command=command)
    assert (code, found["verdict"]) == (3, "unknown")
    assert found["reasons"][0]["field"] == field


@pytest.fixture
def own_model(tmp_path):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 8192,
        "torch_dtype": "bfloat16",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def test_a_config_file_or_its_folder_makes_the_model_a_mere_name(own_model):
    for path in (own_model, own_model / "config.json"):
        code, found = answer(*A100, "--config", str(path), command=["vllm", "serve", "our/own"])
        assert (code, found["model"]["name"], found["model"]["layers"]) == (0, "our/own", 32)


def test_a_folder_is_served_as_vllm_does(own_model):
    code, found = answer(*A100, command=["vllm", "serve", str(own_model)])
    assert (code, found["model"]["layers"]) == (0, 32)


def test_quantisation_beside_the_config_is_not_overlooked(own_model):
    _, plain = answer(*A100, "--config", str(own_model), command=["vllm", "serve", "our/own"])
    (own_model / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "FP8"}}')
    _, found = answer(*A100, "--config", str(own_model), command=["vllm", "serve", "our/own"])
    assert 0.5 < weight_bytes(found) / weight_bytes(plain) < 0.6  # a byte a weight; embedding and head keep two


def weight_bytes(found):
    return next(term["bytes"] for term in found["ranks"][0]["terms"] if term["name"] == "weights")


def test_the_allocator_works_from_exactly_the_bytes_it_is_given():
    """10 GiB / (16 tokens x 81,920 bytes a rank) = 8,192 blocks."""
    code, found = answer(*A100, command=with_flags("--kv-cache-memory-bytes", str(10 * 2**30)))
    assert code == 0
    assert found["kv_cache"]["available_bytes"] == found["kv_cache"]["low_bytes"] == 10 * 2**30
    assert found["kv_cache"]["num_gpu_blocks"] == 8192


def test_the_command_may_be_one_quoted_text():
    done = run("--json", *A100, command=[" ".join(POST_MORTEM)])
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "fits")


def test_people_get_the_verdict_first_then_the_terms():
    done = run(*A100, "--gpu-count", "4")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Fits")
    assert "Ranks 0–3" in done.stdout
    assert any("weights" in line and "exact" in line for line in lines)
    assert "327,680 bytes a token" in done.stdout


def test_why_shows_formulas_and_help_shows_changes():
    done = run(*A100, "--why", "--what-would-help")
    assert "source:" in done.stdout
    assert "What one flag would change:" in done.stdout
    assert "--kv-cache-dtype fp8" in done.stdout


def test_of_the_85_documents_of_the_post_mortem_most_run_and_the_rest_wait():
    """Each takes 8,192 / 16 = 512 blocks; what is left of 85 after the blocks are given out waits."""
    _, found = answer(*A100, "--request", "document:1:7680:512::85")
    running = (found["kv_cache"]["num_gpu_blocks"] - 1) // 512
    assert (
        f"of 85 that come together {running} run, {85 - running} wait"
        in run(*A100, "--request", "document:1:7680:512::85").stdout
    )


def test_a_terminal_that_knows_ascii_alone_gets_escapes():
    done = run(*A100, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert r"Ranks 0\u20133" in done.stdout


def test_errors_for_people_go_to_stderr_in_one_line():
    done = run(*A100, command=with_flags("--tensor-paralel-size", "4"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "tensor_paralel_size: --tensor-paralel-size is not a flag of vLLM 0.32.0. "
        "Fix: did you mean --tensor-parallel-size?\n"
    )


def test_it_needs_no_django_no_database_and_no_writable_home():
    code = "import sys; from planner.estimate_command import main; main(sys.argv[1:]); print('django' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, *A100, "--", *POST_MORTEM],
        cwd=PROJECT,
        env=OFFLINE | {"DATABASE_URL": "nonsense://"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "False", done.stderr


def test_it_is_among_the_commands_that_help_explains():
    done = subprocess.run(
        [sys.executable, "manage.py", "help", "estimate"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert "--gpu-memory-gib" in done.stdout, done.stderr


def test_a_fault_of_ours_is_one_line_and_exit_code_70(monkeypatch, capsys):
    from planner import estimate_command

    monkeypatch.setattr(estimate_command, "estimate", lambda question: 1 / 0)
    assert estimate_command.main([*A100, "--", *POST_MORTEM]) == 70
    shown = capsys.readouterr().err
    assert shown.startswith("ZeroDivisionError")
    assert "Traceback" not in shown
    assert estimate_command.main([*A100, "--traceback", "--", *POST_MORTEM]) == 70
    assert "Traceback" in capsys.readouterr().err
