"""Tokens in a block of full attention: asked for, named by the platform, or what the kernels of the layers take."""

from itertools import product
from math import lcm

from planner.core.attention_choice import LayerBackend
from planner.core.cache_layer import LatentCache
from planner.core.cache_setting import CacheSetting
from planner.core.errors import BadInput

DEFAULT_BLOCK = 16
CPU_LATENT_BLOCK = 16
COMPRESSED_BLOCK = 256
EXPECTED_STEPS = {"FLASHMLA": 64, "CUTLASS_MLA": 128, "FLASHINFER_MLA": 64}


def attention_block(setting: CacheSetting) -> int:
    """Return the block size before it is raised for states or padded layers.

    Raises BadInput where no backend serves the model, or none with the block asked for. Source: vLLM
    `platforms.cuda.check_and_update_config` (until 0.17), `Platform.update_block_size_for_backend`, `platforms.cpu`.
    """
    asked, traits = setting.asked.block_size, setting.model.traits
    if setting.gpu.is_cpu:
        if traits.latent:
            return COMPRESSED_BLOCK if setting.compressed else CPU_LATENT_BLOCK
        return asked or setting.facts.cpu_block_size
    if setting.compressed:
        return asked or COMPRESSED_BLOCK
    if setting.facts.block_size_follows == "platform":
        return _named_by_platform(setting) if traits.latent else asked or DEFAULT_BLOCK
    backends = setting.attention_backends()
    return asked or _preferred(backends, setting)


def _named_by_platform(setting: CacheSetting) -> int:
    """Until 0.17 the platform named the block of the latent kernels that it expected to run, whatever was asked."""
    block = setting.asked.block_size or DEFAULT_BLOCK
    expected = setting.asked.attention_backend or _expected(setting)
    step = EXPECTED_STEPS.get(expected)
    on_hopper = (setting.gpu.compute_capability or (0, 0))[0] == 9
    if step is not None and (expected != "FLASHMLA" or on_hopper):
        fits = block % step == 0 if setting.facts.latent_block_takes_multiples else block == step
        half = expected == "FLASHINFER_MLA" and block == 32
        block = block if fits or half else step
    return 64 if setting.model.traits.sparse else block


def _expected(setting: CacheSetting) -> str:
    facts, capability = setting.facts, setting.gpu.compute_capability or (0, 0)
    every_blackwell = facts.latent_block_takes_multiples and capability[0] == 10
    default = facts.latent_backend_on_blackwell
    if not default or not (capability == (10, 0) or every_blackwell):
        return "FLASHMLA"
    nope = next(cache.nope_head_dim for cache in setting.distinct_caches() if isinstance(cache, LatentCache))
    return "CUTLASS_MLA" if default == "FLASHINFER_MLA" and nope != 128 else default


def _preferred(backends: tuple[LayerBackend, ...], setting: CacheSetting) -> int:
    """The smallest block that the backends take; until 0.30 only the first layer's backend was asked."""
    if not backends:
        return DEFAULT_BLOCK
    if setting.facts.block_size_follows == "first_backend" or len(backends) == 1:
        return backends[0].preferred_block(DEFAULT_BLOCK)
    if all(each.takes_block(DEFAULT_BLOCK) for each in backends):
        return DEFAULT_BLOCK
    sizes = [[block.tokens for block in each.kernel_blocks] for each in backends]
    candidates = sorted({lcm(*combination) for combination in product(*sizes)})
    found = next((size for size in candidates if all(each.takes_block(size) for each in backends)), None)
    if found is None:
        message = f"{', '.join(each.backend.name for each in backends)} share no block size."
        raise BadInput(field="attention_backend", message=message, fix="leave the choice to vLLM")
    return found
