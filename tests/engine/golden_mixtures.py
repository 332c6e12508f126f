"""Write tests/fixtures/mixtures_vllm.json: what vLLM created and cached for the families of shapes_moe.

    python -m tests.engine.golden_mixtures PYTHON_OF_THE_ENGINE

Each line of `answers` is as in golden_hybrids. What no CPU builds is asked of an emulated GPU: for it PYTHONPATH has to
hold triton and torchvision for the engine's Python (see emulated_cuda.py) in EMULATED_PYTHONPATH.
"""

import os
import subprocess
import sys
from pathlib import Path

from planner.catalog.model_files import find_config
from tests.engine.engine import Engine
from tests.engine.golden_hybrids import answers, unquantised
from tests.engine.golden_weights import VERSION, written
from tests.engine.shapes_moe import BUILT_ON_A_GPU, CATALOGUED, CATALOGUED_ON_A_GPU, MIXTURES

FIXTURE = Path(__file__).parents[1] / "fixtures" / "mixtures_vllm.json"
SMALL_PLACES = [(1, 1, 0), (4, 1, 3), (8, 1, 0), (2, 3, 0), (2, 3, 2), (2, 3, 5)]
LARGE_PLACES = [(1, 1, 0), (2, 1, 1), (4, 1, 0), (8, 1, 7), (16, 1, 0), (2, 2, 0), (2, 2, 3)]


def catalogued(names):
    """Return the configs of models of the catalog, without their quantisation."""
    return {name: unquantised(find_config(name)) for name in names}


def main(python):
    """Ask for every shape and write the fixture."""
    version = subprocess.run([python, "-c", VERSION], check=True, capture_output=True, text=True).stdout.strip()
    engine = Engine(python)
    lines = [*answers(engine, MIXTURES, SMALL_PLACES), *answers(engine, catalogued(CATALOGUED), LARGE_PLACES)]
    engine.close()
    os.environ.update(EMULATED_CAPABILITY="9.0", PYTHONPATH=os.environ.get("EMULATED_PYTHONPATH", ""))
    engine = Engine(python)
    lines += answers(engine, BUILT_ON_A_GPU, SMALL_PLACES)
    lines += answers(engine, catalogued(CATALOGUED_ON_A_GPU), LARGE_PLACES)
    engine.close()
    FIXTURE.write_text(written({"vllm": version, "answers": lines}))


if __name__ == "__main__":
    main(sys.argv[1])
