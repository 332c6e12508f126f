"""The table of refusals: complete, recognisable, and the one that plans speak of."""

import re
from pathlib import Path

import pytest

import planner.core
from planner import catalog
from planner.core.engine import Version

RULES = {rule.id: rule for rule in catalog.rules()}
CORE = Path(planner.core.__file__).parent
ID_IN_CODE = re.compile(r"""(?:rule=|refuse\(\s*|warn\(\s*|Refusal\(\s*|refusal=)"([a-z0-9]+(?:_[a-z0-9]+)+)\"""")


def test_there_is_a_rule_for_every_refusal_of_the_list():
    assert len(RULES) == len(catalog.rules()) >= 77


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_says_what_it_means_and_what_to_do(rule):
    assert rule.level in ("refuse", "warn")
    assert rule.title.endswith(".")
    assert rule.means.endswith(".")
    assert rule.remedy.endswith(".")
    assert re.fullmatch(r"https://github\.com/vllm-project/vllm/blob/v[\d.]+/vllm/\S+", rule.source)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_the_releases_of_a_rule_are_in_order(rule):
    first, last = rule.versions
    assert rule.holds(Version.parse(first))
    assert not last or (rule.holds(Version.parse(last)) and Version.parse(first) <= Version.parse(last))


def test_a_rule_that_went_no_longer_holds():
    assert RULES["kv_max_len_v0"].holds(Version(0, 10, 2))
    assert not RULES["kv_max_len_v0"].holds(Version(0, 11))
    assert not RULES["fp8_online_removed"].holds(Version(0, 30))


def test_every_rule_that_a_plan_names_is_in_the_table():
    named = set()
    for path in CORE.rglob("*.py"):
        named |= set(ID_IN_CODE.findall(path.read_text()))
    assert len(named) > 60
    assert named <= set(RULES)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (
            "max_model_len_gt_derived",
            "ValueError: User-specified max_model_len (32768) is greater than the derived max_model_len "
            "(max_position_embeddings=4096 or model_max_length=None in model's config.json).",
        ),
        (
            "heads_tp",
            "ValueError: Total number of attention heads (64) must be divisible by tensor parallel size (3).",
        ),
        (
            "free_memory",
            "ValueError: Free memory on device cuda:0 (11.01/79.15 GiB) on startup is less than desired GPU memory "
            "utilization (0.9, 71.24 GiB). Decrease GPU memory utilization or reduce GPU memory used.",
        ),
        (
            "kv_one_request",
            "ValueError: To serve at least one request with the models's max seq len (131072), (16.0 GiB KV cache is "
            "needed, which is larger than the available KV cache memory (13.5 GiB).",
        ),
        ("no_kv_memory", "ValueError: No available memory for the cache blocks. Try increasing ..."),
        (
            "bf16_lt_sm80",
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 ...",
        ),
        ("torch_oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total ..."),
        ("batched_lt_seqs", "max_num_batched_tokens (128) must be greater than or equal to max_num_seqs (256)."),
        ("world_gt_gpus", "World size (8) is larger than the number of available GPUs (4) in this node."),
    ],
)
def test_a_rule_is_recognised_by_vllms_message(rule, line):
    assert RULES[rule].message.search(line)
    others = {name for name, other in RULES.items() if other.message.search(line)} - {rule}
    assert not others
