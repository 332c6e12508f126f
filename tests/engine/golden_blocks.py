"""Write tests/fixtures/blocks_vllm.json: what the planners of many vLLM releases make of the same layers and bytes.

    python -m tests.engine.golden_blocks PYTHON_OF_THE_ENGINE FOLDER

FOLDER holds one folder a release, named after it, with the Python files of its wheel (see ask_old_planner.py); releases
before 0.9 also need `triton` on PYTHONPATH. Run it again when a release is added. Each question is followed by the
answers, each with the first release that gave it: it holds until the next.
"""

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planner.core.engine import Version
from tests.core.cache_questions import told
from tests.engine.cache_mixes import MIXES, question_of

ASK = Path(__file__).with_name("ask_old_planner.py")
FIXTURE = Path(__file__).parents[1] / "fixtures" / "blocks_vllm.json"
QUESTIONS_A_MIX = 7
AT_ONCE = 2
GIB = 1 << 30


def full(heads=8, size=128, block=16, **fields):
    """Return a full-attention layer in bfloat16."""
    named = {"num_kv_heads": heads, "head_size": size, "head_size_v": size}
    return {"kind": "full_attention", "block_size": block, **named, "dcp_sharded": True, **fields}


def window(tokens, **fields):
    """Return a layer with a window."""
    return {**full(**fields), "kind": "sliding_window", "sliding_window": tokens}


def case(specs, rows, available, length, **settings):
    """Return a question about one stage."""
    return {
        "specs": specs,
        "stages": [[available, rows]],
        "max_model_len": length,
        "in_flight_tokens": 16384,
        **settings,
    }


LLAMA_8B = ([full()], [[32, 0]])
GPT_OSS = ([full(size=64), window(128, size=64)], [[1, 0], [1, 1]] * 12)
STATES = {"kind": "mamba", "block_size": 544, "state_bytes": 1_097_728, "page_size_padded": 544 * 2048}
QWEN_NEXT = ([full(heads=2, size=256, block=544), STATES], [[3, 1], [1, 0]] * 12)
LATENT = {"kind": "mla_attention", "block_size": 64, "head_size": 576, "dcp_sharded": True}
BY_HAND = [
    case(*LLAMA_8B, 20 * GIB, 131072),
    case(*LLAMA_8B, 16 * GIB, 131072),
    case(*LLAMA_8B, 16 * GIB + 32 * 65536, 131072),
    case(*LLAMA_8B, 10 * GIB, 131072, auto=True),
    case(*LLAMA_8B, 20 * GIB, 100001),
    case(*LLAMA_8B, 20 * GIB, 100001, override=777),
    case(*LLAMA_8B, 0, 8192),
    case(*LLAMA_8B, 0, 8192, auto=True),
    case([full(heads=16), window(1024, heads=16)], [[5, 1], [1, 0]] * 10 + [[2, 1]], 20 * GIB, 131072),
    case(*GPT_OSS, 20 * GIB, 131072),
    case(*GPT_OSS, 20 * GIB, 131072, hybrid_manager=False),
    case(GPT_OSS[0], [*GPT_OSS[1], [1, 0]], 20 * GIB, 131072),
    case(*QWEN_NEXT, 20 * GIB, 262144),
    case(*QWEN_NEXT, 20 * GIB, 262144, mamba_cache_mode="align"),
    case([LATENT], [[61, 0]], 20 * GIB, 163840),
    {**case([full()], [[20, 0]], 9_000_000_000, 8192)}
    | {"stages": [[9_000_000_000, [[20, 0]]], [5_000_000_001, [[20, 0]]]]},
]


def questions():
    """Return the questions, the same every time."""
    draw = random.Random(33)
    return [*BY_HAND, *(question_of(draw, mix) for _ in range(QUESTIONS_A_MIX) for mix in MIXES)]


def answers_of(release, python, asked):
    """Return one release's answers."""
    path = os.pathsep.join(filter(None, [str(release), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [python, ASK],
        input=json.dumps(asked),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        cwd=release,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{release.name}: {done.stderr[-2000:]}")
    return [told(answer) for answer in json.loads(done.stdout)]


def changes(releases, answers):
    """Return each answer with the first release that gave it."""
    told_before = object()
    for release, answer in zip(releases, answers, strict=True):
        if answer != told_before:
            yield [release, answer]
        told_before = answer


def main(python, folder):
    """Ask every release and write the fixture, a question and its answers a line."""
    asked = questions()
    folders = [each for each in Path(folder).iterdir() if each.is_dir()]
    releases = sorted(folders, key=lambda each: Version.parse(each.name))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        told_by = list(pool.map(lambda release: answers_of(release, python, asked), releases))
    names = [release.name for release in releases]
    rows = [
        [question, list(changes(names, answers))]
        for question, answers in zip(asked, zip(*told_by, strict=True), strict=True)
    ]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    FIXTURE.write_text(f'{{"releases": {json.dumps(names)},\n"rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
