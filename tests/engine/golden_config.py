"""Write tests/fixtures/config_vllm.json: what vLLM's own configuration code makes of the commands of commands.py.

    python -m tests.engine.golden_config PYTHON_OF_THE_ENGINE TRITON:TORCHVISION

The second word are folders for PYTHONPATH (see ask_config.py). One question and its answer a line; the sizes of CUDA
graphs, which repeat, are kept once and named by number. Run it again when a release is added.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from planner import catalog
from tests.engine.commands import GPUS, commands

ASK = Path(__file__).with_name("ask_config.py")
FIXTURE = Path(__file__).parents[1] / "fixtures" / "config_vllm.json"
SIZES = "cudagraph_capture_sizes"


def answers(python, path, questions):
    """Return the engine's answers, in order."""
    asked = [
        {**question, "gpu": GPUS[question["gpu"]], "config": dict(catalog.find_config(question["model"]))}
        for question in questions
    ]
    done = subprocess.run(
        [python, ASK],
        input="".join(json.dumps(question) + "\n" for question in asked),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def short(answer, sizes):
    """Return an answer with its sizes by number, and a refusal by its first lines."""
    if "refused" in answer:
        return {"refused": answer["refused"], "text": " ".join(answer["text"].split())[:260]}
    captured = answer.pop(SIZES)
    if captured not in sizes:
        sizes.append(captured)
    return {**answer, SIZES: sizes.index(captured)}


def main(python, path):
    """Ask every question and write the fixture."""
    questions, sizes = commands(), []
    rows = [
        [question, short(answer, sizes)]
        for question, answer in zip(questions, answers(python, path, questions), strict=True)
    ]
    lines = [f'"sizes": {_lines(sizes)}', f'"answers": {_lines(rows)}']
    FIXTURE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _lines(rows):
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]"


if __name__ == "__main__":
    main(*sys.argv[1:])
