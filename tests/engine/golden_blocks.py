"""Write tests/fixtures/blocks_vllm.json: what the planners of many vLLM releases answer to the same questions.

    python -m tests.engine.golden_blocks PYTHON_OF_THE_ENGINE FOLDER

FOLDER holds one folder a release, named after it, with the Python files of its wheel (see ask_old_planner.py); releases
before 0.9 also need `triton` on PYTHONPATH. Run it again when a release is added.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from planner.core.engine import Version

ASK = Path(__file__).with_name("ask_old_planner.py")
FIXTURE = Path(__file__).parents[1] / "fixtures" / "blocks_vllm.json"
GIB = 1 << 30
LLAMA_8B = (32, 8, 128, 2)
BY_HAND = [
    [[[*LLAMA_8B, 20 * GIB]], 16, 131072, None],
    [[[*LLAMA_8B, 16 * GIB]], 16, 131072, None],
    [[[*LLAMA_8B, 16 * GIB + 32 * 65536]], 16, 131072, None],
    [[[*LLAMA_8B, 10 * GIB]], 16, -131072, None],
    [[[*LLAMA_8B, 20 * GIB]], 16, 100001, None],
    [[[*LLAMA_8B, 20 * GIB]], 16, 100001, 777],
    [[[*LLAMA_8B, 0]], 16, 8192, None],
    [[[*LLAMA_8B, 0]], 16, -8192, None],
    [[[20, 8, 128, 2, 9_000_000_000], [20, 8, 128, 2, 5_000_000_001]], 16, 8192, None],
]


def drawn_questions(count, seed=32):
    """Return questions drawn at random, the same every time."""
    draw = random.Random(seed)
    for _ in range(count):
        layer = [draw.choice([1, 2, 8]), draw.choice([64, 96, 128, 256]), draw.choice([1, 2, 4])]
        stages = [
            [draw.randint(1, 40), *layer, draw.randint(1 << 22, 8 * GIB)] for _ in range(draw.choice([1, 1, 1, 2, 3]))
        ]
        length = draw.randint(1, 200_000) * draw.choice([1, 1, 1, -1])
        yield [stages, draw.choice([16, 32, 128]), length, draw.choice([None, None, None, draw.randint(1, 9000)])]


def answers_of(release, python, questions):
    """Return one release's answers."""
    path = os.pathsep.join(filter(None, [str(release), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [python, ASK],
        input=json.dumps(questions),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        cwd=release,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{release.name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def main(python, folder):
    """Ask every release and write the fixture, one question and one answer a line."""
    questions = [*BY_HAND, *drawn_questions(60)]
    releases = sorted(
        (each for each in Path(folder).iterdir() if each.is_dir()), key=lambda each: Version.parse(each.name)
    )
    parts = [f'"questions": {_lines(questions)}']
    parts += [f'"{release.name}": {_lines(answers_of(release, python, questions))}' for release in releases]
    FIXTURE.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _lines(rows):
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]"


if __name__ == "__main__":
    main(*sys.argv[1:])
