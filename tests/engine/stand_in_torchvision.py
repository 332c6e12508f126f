"""Let vLLM's CPU build import the models that see without torchvision, whose image transforms no weight depends on.

Imported before transformers, inside the engine's own interpreter. Where the real package is installed it is used.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import tempfile
from pathlib import Path

VERSION = "0.28.0"


class _Name(type):
    """A class in which every public name exists, as text (`InterpolationMode.BICUBIC`)."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != "torchvision":
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__version__ = VERSION
        module.__getattr__ = _any_name


def _any_name(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Name(name, (), {})


def install():
    """Make `import torchvision` work, and let its metadata be found."""
    if importlib.util.find_spec("torchvision") is not None:
        return
    sys.meta_path.insert(0, _StandIn())
    metadata = Path(tempfile.mkdtemp()) / f"torchvision-{VERSION}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torchvision\nVersion: {VERSION}\n")
    sys.path.append(str(metadata.parent))


install()
