"""Write tests/fixtures/quantised_vllm.json: what vLLM 0.32 creates for quantised checkpoints on emulated GPUs.

    python -m tests.engine.golden_quantised PYTHON_OF_THE_ENGINE [CAPABILITY ...]

PYTHONPATH has to hold triton and torchvision for the engine's Python (see emulated_cuda.py). A line of the fixture is
[case, model, capability, tp, expert parallel, parameter bytes], or ends in the kind of refusal. Only what the fixture
lacks is asked: delete it when the engine's version changes.
"""

import json
import os
import sys
from pathlib import Path

from tests.engine.engine import Engine
from tests.engine.shapes_quantised import CASES, MODELS

FIXTURE = Path(__file__).parents[1] / "fixtures" / "quantised_vllm.json"
CAPABILITIES = ("8.0", "8.9", "9.0", "10.0", "12.0")
SIZES = (1, 2, 4, 8)
ELSEWHERE = (4,)
FULLY_ASKED = "9.0"


def questions(capability):
    """Yield case, model, TP and expert parallelism, most sizes on one capability only."""
    sizes = SIZES if capability == FULLY_ASKED else ELSEWHERE
    for case, (models, _) in CASES.items():
        for model in models:
            yield from ((case, model, capability, tp, False) for tp in sizes)
            if capability == FULLY_ASKED and model == "experts":
                yield case, model, capability, 4, True


def answer(engine, case, model, tp, expert_parallel):
    """Return the bytes that vLLM creates, or how it refused; an expert map is computed, so not on `meta`."""
    said = engine.ask(
        "weights",
        config={**MODELS[model], "quantization_config": CASES[case][1]},
        tensor_parallel_size=tp,
        device="cpu" if expert_parallel else "meta",
        flags={"enable_expert_parallel": expert_parallel, "allow_deprecated_quantization": True},
    )
    return said.get("refused") or said["parameter_bytes"]


def write(lines):
    """Write the answers in the order of the cases."""
    order = sorted(lines, key=lambda line: (CAPABILITIES.index(line[2]), list(CASES).index(line[0])))
    FIXTURE.write_text("[\n" + ",\n".join(f"  {json.dumps(line)}" for line in order) + "\n]\n")


def main(python, *capabilities):
    """Ask on every capability (or those named) what is not known yet, and write the fixture after each."""
    lines = json.loads(FIXTURE.read_text()) if FIXTURE.exists() else []
    known = {tuple(line[:5]) for line in lines}
    for capability in capabilities or CAPABILITIES:
        os.environ["EMULATED_CAPABILITY"] = capability
        engine = Engine(python)
        for question in questions(capability):
            if question not in known:
                case, model, _, tp, expert_parallel = question
                lines.append([*question, answer(engine, case, model, tp, expert_parallel)])
        engine.close()
        write(lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
