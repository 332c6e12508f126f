"""Write tests/fixtures/towers_vllm.json: what vLLM created for the catalog's models that see or hear, unquantised.

    python -m tests.engine.golden_towers PYTHON_OF_THE_ENGINE
    EMULATED_CAPABILITY=9.0 python -m tests.engine.golden_towers PYTHON_OF_THE_ENGINE

Each line of `answers` is [name, tp, pp, rank, parameter_bytes, buffer_bytes], or ends in the kind of refusal. Models
that this engine cannot build (no kernel, no package) are printed and left out; the second run adds those that need a
GPU's kernels. Remove the fixture to ask for everything again.
"""

import json
import subprocess
import sys
from pathlib import Path

from planner import catalog
from planner.core.errors import PlanningError
from tests.engine.engine import Engine
from tests.engine.golden_weights import VERSION
from tests.engine.judged import CANNOT_DIVIDE, vllms

FIXTURE = Path(__file__).parents[1] / "fixtures" / "towers_vllm.json"
DTYPE = "bfloat16"
PLACES = [(1, 1, 0), (2, 2, 3), (8, 1, 7)]
KINDS = frozenset({"heads_tp", "pp_unsupported", CANNOT_DIVIDE})


def unquantised(config):
    """Return a config.json as if its checkpoint were not quantised."""
    plain = {key: value for key, value in config.items() if key != "quantization_config"}
    text = plain.get("text_config")
    return {**plain, "text_config": unquantised(text)} if isinstance(text, dict) else plain


def names():
    """Return the catalog's models with a tower."""
    for entry in catalog.model_entries():
        try:
            if catalog.find_model(entry.name).decoder.towers:
                yield entry.name
        except PlanningError:
            continue


def lines(engine, known):
    """Yield one line for each model and place that the engine can build; those that are known are not asked for."""
    yield from known
    for name in sorted(set(names()) - {line[0] for line in known}):
        config = unquantised(catalog.find_config(name))
        for tp, pp, rank in PLACES:
            answer = vllms(engine, config, tp=tp, pp=pp, rank=rank, dtype=DTYPE)
            if answer.get("refused", CANNOT_DIVIDE) not in KINDS:
                print(name, answer["refused"][:120])  # noqa: T201 - the script's own report
                break
            keys = ("refused",) if "refused" in answer else ("parameter_bytes", "buffer_bytes")
            yield [name, tp, pp, rank, *(answer[key] for key in keys)]


def main(python):
    """Ask for every model and write the fixture."""
    version = subprocess.run([python, "-c", VERSION], check=True, capture_output=True, text=True).stdout.strip()
    known = json.loads(FIXTURE.read_text())["answers"] if FIXTURE.exists() else []
    engine = Engine(python)
    rows = ",\n".join(f"  {json.dumps(line)}" for line in sorted(lines(engine, known)))
    engine.close()
    FIXTURE.write_text(f'{{\n"vllm": {json.dumps(version)},\n"answers": [\n{rows}\n]\n}}\n')


if __name__ == "__main__":
    main(sys.argv[1])
