"""vLLM's own parser as judge of what we read: the same spellings, the same values, the same refusals."""

import json
import subprocess
from pathlib import Path

import pytest

from planner.catalog.flags import options
from planner.core.engine import Version
from planner.core.errors import BadInput
from planner.readers.command import given_fields, read_command

NOW = Version(0, 32)
SAME = """
-tp 4 | --tensor_parallel_size=4 | --tensor-par 2 | -tp=2 -pp 2 -dcp 1 | -dp=2 | -n2 | -qfp8 | -q fp8
--max-model-len 40k | --max-model-len 40K | --max-model-len 25.6k | --max-model-len 0 | --max-num-batched-tokens 8K
--kv-cache-memory 1G | --kv-cache-memory-bytes 1.5g | --max-num-seqs 1_000 | --num-gpu-blocks-override None
-O2 | -O=2 | -O 2 | --enforce-eager | --no-enforce-eager | --no-async-scheduling | -ep | -dpe | --trust-remote
--gpu-memory-utilization 1.5 | --device-memory-utilization 0.5 | --gpu-memory-utilization 0.5 --gpu-memory-util 0.6
--cudagraph-capture-sizes 1 2 4 | --cudagraph-capture-sizes=4 | --dtype half | --kv-cache-dtype fp8 | --block-size 24
--quantization None | --seed -3 | --max-lora-rank 16 | --enable-lora | --no-enable-prefix-cach | --load-format dummy
--attention-backend FLASHINFER | --watermark 0.1 | --runner generate | --served-model-name one | --disable-log-stats
"""
REFUSED = """
--max-model-len 1.5K | --max-num-seqs 1e3 | --max-num-seqs | --dtype fp16 | --kv-cache-dtype fp9 | --tp 2 | -tp4
--enforce-eager=true | --enforce-eager true | --swap-space 4 | --task generate | --no-disable-log-stats | --max-num 2
--tensor-parallel-size.x 2 | --no-tensor-parallel-size | --max-lora-rank 17 | --speculative-config x | -cc 3
--all2all-backend mori | --mamba-cache-mode all | --headless=1 | -cc {bad | other/model | --tensor-paralel-size 4
"""


def cases(text: str) -> list[list[str]]:
    return [case.split() for line in text.strip().splitlines() for case in line.split(" | ")]


@pytest.fixture(scope="module")
def parser(engine):
    """The parser's spellings, and its answers by the words it was asked."""
    asked = cases(SAME) + cases(REFUSED)
    done = subprocess.run(
        [engine.process.args[0], Path(__file__).with_name("ask_parser.py")],
        input="".join(json.dumps(["some/model", *words]) + "\n" for words in asked),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("{", "["))]
    assert len(lines) == 1 + len(asked), done.stderr[-2000:]
    return lines[0], {" ".join(words): answer for words, answer in zip(asked, lines[1:], strict=True)}


def test_every_spelling_of_the_release_is_known_and_no_other(parser):
    spellings, _ = parser
    assert set(spellings) - {"-h", "--help"} == set(options(NOW))


@pytest.mark.parametrize("words", cases(SAME), ids=" ".join)
def test_a_value_is_read_as_vllm_reads_it(parser, words):
    settings = parser[1][" ".join(words)]
    assert settings["model_tag"] == "some/model"
    for name, value in given_fields(read_command(["vllm", "serve", "some/model", *words], version=NOW)).items():
        theirs = settings[name]
        shown = theirs[0] if name == "served_model_name" else theirs
        assert json.dumps(value) == json.dumps(shown) or str(value) == str(shown)


@pytest.mark.parametrize("words", cases(REFUSED), ids=" ".join)
def test_what_vllm_s_parser_refuses_is_bad_input(parser, words):
    assert "refused" in parser[1][" ".join(words)]
    with pytest.raises(BadInput):
        read_command(["vllm", "serve", "some/model", *words], version=NOW)
