"""Write tests/fixtures/hybrids_vllm.json: what vLLM created and cached for the families of shapes_hybrid.

    python -m tests.engine.golden_hybrids PYTHON_OF_THE_ENGINE

Each line of `answers` is [name, tp, pp, rank, parameter_bytes, buffer_bytes, max_model_len, kv, kv_layers], or ends in
the kind of refusal. Names with a slash are models of the catalog, asked without their quantisation.
"""

import subprocess
import sys
from pathlib import Path

from planner.catalog.model_files import find_config
from tests.engine.engine import Engine
from tests.engine.golden_weights import VERSION, written
from tests.engine.judged import vllms
from tests.engine.shapes_hybrid import CATALOGUED, COMPUTES_WHILE_BUILT, HYBRIDS

FIXTURE = Path(__file__).parents[1] / "fixtures" / "hybrids_vllm.json"
SMALL_PLACES = [(1, 1, 0), (4, 1, 3), (2, 3, 0), (2, 3, 5)]
LARGE_PLACES = [(1, 1, 0), (2, 1, 1), (4, 1, 0), (8, 1, 7), (16, 1, 0), (2, 2, 0), (2, 2, 3)]
KEYS = ("parameter_bytes", "buffer_bytes", "max_model_len", "kv", "kv_layers")


def unquantised(config):
    """Return the config of the same model in 16 bits."""
    return {key: value for key, value in config.items() if key != "quantization_config"}


def answers(engine, shapes, places):
    """Yield one line for each shape and place; a layout of which one rank is refused is refused."""
    for name, config in shapes.items():
        device = "cpu" if name in COMPUTES_WHILE_BUILT else "meta"
        given = {
            (tp, pp, rank): vllms(engine, config, tp=tp, pp=pp, rank=rank, device=device) for tp, pp, rank in places
        }
        refused = {place[:2]: answer["refused"] for place, answer in given.items() if "refused" in answer}
        for place, answer in given.items():
            whole = [refused[place[:2]]] if place[:2] in refused else [answer[key] for key in KEYS]
            yield [name, *place, *whole]


def main(python):
    """Ask for every shape and write the fixture."""
    version = subprocess.run([python, "-c", VERSION], check=True, capture_output=True, text=True).stdout.strip()
    engine = Engine(python)
    catalogued = {name: unquantised(find_config(name)) for name in CATALOGUED}
    lines = [*answers(engine, HYBRIDS, SMALL_PLACES), *answers(engine, catalogued, LARGE_PLACES)]
    engine.close()
    FIXTURE.write_text(written({"vllm": version, "answers": lines}))


if __name__ == "__main__":
    main(sys.argv[1])
