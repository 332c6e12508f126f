"""Let vLLM's CPU build believe that it runs on an NVIDIA GPU, far enough to build a model on `meta` and ask its caches.

Imported before vllm, inside the engine's own interpreter; needs `triton` (and `torchvision` for some towers) beside it.
Nothing is ever computed: compiled extensions, FlashInfer and the like become modules whose every name exists, and the
CUDA runtime answers for one GPU of the compute capability in EMULATED_CAPABILITY ("9.0"). A question that really runs a
kernel fails. Emulated is a full install: FlashAttention 2 to 4, FlashInfer with its kernels, FlashMLA, DeepGEMM.
"""

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
from contextlib import suppress
from types import SimpleNamespace
from unittest.mock import MagicMock

import torch

CAPABILITY = tuple(int(part) for part in os.environ["EMULATED_CAPABILITY"].split("."))
MEMORY_BYTES = int(float(os.environ.get("EMULATED_MEMORY_GIB", "80")) * (1 << 30))
GPU_NAME = os.environ.get("EMULATED_NAME", "NVIDIA emulated")
COMPILED = (
    "vllm._C",
    "vllm._C_stable_libtorch",
    "vllm._moe_C",
    "vllm._moe_C_stable_libtorch",
    "vllm._qutlass_C",
    "vllm._flashmla_C",
    "vllm._flashmla_extension_C",
    "vllm._flashkda_C",
    "vllm.vllm_flash_attn._vllm_fa2_C",
    "vllm.vllm_flash_attn._vllm_fa3_C",
    "vllm.cumem_allocator",
    "vllm.third_party.flashmla",
    "vllm.third_party.deep_gemm",
    "vllm.model_executor.layers.minimax_rms_norm.lamport_workspace",
    "vllm.model_executor.kernels.linear.cute_dsl.gemm_rs_ar",
)
PACKAGES = ("flashinfer", "flashinfer_cubin", "deep_gemm", "cutlass", "cuda", "quack")
WITHOUT = ("flashinfer.fused_moe", "flashinfer.comm", "flashinfer.gemm")


class Everything(types.ModuleType):
    """A module in which every public name exists: classes that do nothing, functions that return nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": _nothing}) if name[:1].isupper() else Nothing()


class Nothing:
    """A function that returns nothing, or a module of names that are the same."""

    def __call__(self, *_, **__):
        return None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def _nothing(*_, **__):
    return None


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for whatever only a CUDA build has."""

    def find_spec(self, name, path=None, target=None):
        known = name.split(".")[0] in PACKAGES and not name.startswith(WITHOUT)
        wanted = known or any(name == each or name.startswith(each + ".") for each in COMPILED)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if wanted else None

    def create_module(self, spec):
        return Everything(spec.name)

    def exec_module(self, module):
        """Nothing to run."""


class EveryOperator:
    """An operator that was never registered: it may be looked at and patched, not called."""

    _schema = None

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, *_, **__):
        if "support" in self.__name__:
            return True
        if "workspace_size" in self.__name__:
            return 0
        raise RuntimeError(f"{self.__name__} was really called")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def _stand_in_for_operators():
    """Custom operators of the CUDA build cannot be registered, implemented or faked here, and need not be."""
    from torch._ops import _OpNamespace

    known = _OpNamespace.__getattr__

    def any_operator(self, name):
        try:
            return known(self, name)
        except AttributeError:
            if name.startswith("__") or not self.name.startswith(("_C", "_moe_C", "_vllm_fa", "_flashkda")):
                raise
            operator = EveryOperator(name)
            setattr(self, name, operator)
            return operator

    _OpNamespace.__getattr__ = any_operator
    for method in ("_register_fake", "impl"):
        _tolerate_absent(torch.library.Library, method)
    with suppress(RuntimeError):
        torch.library.Library("torchvision", "DEF").define("nms(Tensor a, Tensor b, float c) -> Tensor")


def _tolerate_absent(owner, method):
    original = getattr(owner, method)

    def tolerant(*arguments, **named):
        try:
            return original(*arguments, **named)
        except RuntimeError as error:
            if "does not exist" not in str(error):
                raise
            return None

    setattr(owner, method, tolerant)


def _one_gpu():
    """The CUDA runtime as torch shows it: one GPU of the capability, all of its memory free."""
    properties = SimpleNamespace(
        name=GPU_NAME,
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        total_memory=MEMORY_BYTES,
        multi_processor_count=132,
        is_integrated=False,
        shared_memory_per_block_optin=232448,
        shared_memory_per_multiprocessor=233472,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
        warp_size=32,
        L2_cache_size=50 << 20,
        gcnArchName="",
        uuid="0",
    )
    answers = {
        "get_device_properties": properties,
        "get_device_capability": CAPABILITY,
        "get_device_name": GPU_NAME,
        "device_count": 8,
        "current_device": 0,
        "set_device": None,
        "synchronize": None,
        "is_available": True,
        "mem_get_info": (MEMORY_BYTES, MEMORY_BYTES),
        "empty_cache": None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, _answer=answer, **__: _answer)
    torch.cuda.Stream = torch.cuda.Event = MagicMock
    torch.cuda.current_stream = MagicMock()
    answers = {
        "current_device_index": 0,
        "device_count": 8,
        "is_available": True,
        "set_device_index": None,
        "empty_cache": None,
        "synchronize": None,
    }
    for name, answer in answers.items():
        setattr(torch.accelerator, name, lambda *_, _answer=answer, **__: _answer)
    torch.accelerator.current_accelerator = lambda *_, **__: torch.device("cuda")
    torch.version.cuda = "12.9"
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")


def _triton_for_it():
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    backends["nvidia"].driver.is_active = staticmethod(lambda: True)
    backends["amd"].driver.is_active = staticmethod(lambda: False)
    active = MagicMock()
    active.get_current_target.return_value = GPUTarget("cuda", 10 * CAPABILITY[0] + CAPABILITY[1], 32)
    active.get_current_device.return_value = 0
    active.get_active_torch_device.return_value = torch.device("cpu")
    active.get_device_interface.return_value = torch.cuda
    active.utils.get_device_properties.return_value = {
        "max_shared_mem": 232448,
        "multiprocessor_count": 132,
        "warpSize": 32,
    }
    driver.set_active(active)


def _cuda_platform():
    from vllm import platforms
    from vllm.platforms import cuda
    from vllm.platforms.interface import DeviceCapability

    class EmulatedCuda(cuda.CudaPlatformBase):
        """vLLM's own CUDA platform on a GPU that answers from constants."""

        get_device_capability = classmethod(lambda cls, device_id=0: DeviceCapability(*CAPABILITY))
        get_device_name = classmethod(lambda cls, device_id=0: GPU_NAME)
        get_device_total_memory = classmethod(lambda cls, device_id=0: MEMORY_BYTES)
        get_device_uuid = classmethod(lambda cls, device_id=0: "0")
        is_fully_connected = classmethod(lambda cls, ids: True)
        device_count = classmethod(lambda cls: 8)
        log_warnings = classmethod(lambda cls: None)
        num_compute_units = classmethod(lambda cls, device_id=0: 132)
        get_all_device_numa_nodes = classmethod(lambda cls: None)
        get_device_communicator_cls = classmethod(
            lambda cls: "vllm.distributed.device_communicators.base_device_communicator.DeviceCommunicatorBase"
        )

    platforms.vllm_version_matches_substr = lambda part: False
    platforms.current_platform = platforms._current_platform = EmulatedCuda()


def _everything_installed():
    """FlashAttention 4 and FlashInfer's newer kernels are looked for by their files and signatures."""
    from vllm.utils import flashinfer
    from vllm.vllm_flash_attn import flash_attn_interface

    flash_attn_interface.FA4_AVAILABLE = True
    for name in ("has_flashinfer_sm90_nope_mla", "has_nvidia_artifactory", "has_flashinfer_cubin"):
        setattr(flashinfer, name, lambda: True)


def emulate():
    """Change torch, triton and vllm in place; call it once, before anything else of vllm is imported."""
    with suppress(ImportError):
        importlib.import_module("tvm_ffi")  # it looks at what a real `cuda` package has
    sys.meta_path.insert(0, StandIns())
    _one_gpu()
    _stand_in_for_operators()
    _triton_for_it()
    _cuda_platform()
    _everything_installed()
