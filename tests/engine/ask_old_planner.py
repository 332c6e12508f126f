"""Ask the planner of any vLLM release for its KV cache: a list of questions as JSON on stdin, the answers on stdout.

    PYTHONPATH=SOURCES PYTHON_OF_THE_ENGINE tests/engine/ask_old_planner.py < questions.json

SOURCES holds the release's Python files (`vllm/...`, unpacked from its wheel). The planner is plain Python, so it runs
on a newer release's torch and transformers; packages that only other parts of that release import are stood in for.
Questions and answers are those of release_planner.py.
"""

import importlib
import importlib.abc
import importlib.machinery
import json
import os
import sys
import types

os.environ.update(VLLM_LOGGING_LEVEL="INFO", VLLM_USE_V1="1")
ANSWERS = os.dup(1)
os.dup2(2, 1)  # whatever the release prints is no answer
ABSENT = ("gguf", "diskcache", "ray", "cupy")


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds empty modules for packages that this environment lacks."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in ABSENT else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: self._missing(name)
        return module

    def exec_module(self, module):
        """Nothing to run."""

    @staticmethod
    def _missing(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


sys.meta_path.insert(0, StandIn())

transformers = importlib.import_module("transformers")
_register = transformers.AutoConfig.register
transformers.AutoConfig.register = staticmethod(lambda *names, **how: _register(*names, **{**how, "exist_ok": True}))

release_planner = importlib.import_module("release_planner")


def main():
    """Answer every question of stdin."""
    release_planner.listen()
    with os.fdopen(ANSWERS, "w") as answers:
        json.dump([release_planner.answer(question) for question in json.load(sys.stdin)], answers)


if __name__ == "__main__":
    main()
