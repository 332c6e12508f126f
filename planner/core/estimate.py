"""A question and its answer: model, device, version and command in; verdict, budget, cache and capacity out."""

from dataclasses import dataclass

from planner.core.budget import RankBudget, StageBudget, rank_budget, stage_budget
from planner.core.cache_plan import CacheDesign, CacheGroup, cache_design
from planner.core.cache_words import block_formula, why_they_differ
from planner.core.calibration import Fit, Situation
from planner.core.capacity import Capacity, GroupCost, Pool, RequestClass, requests_at_once
from planner.core.capacity_report import capacity_of
from planner.core.defaults import resolve
from planner.core.drafter import Drafter, Target, drafter_of
from planner.core.engine import EngineArgs, EngineFacts, ResolvedArgs
from planner.core.errors import Refusal
from planner.core.free_memory import FreeMemory, free_memory
from planner.core.hardware import Gpu
from planner.core.host_memory import HostMemory, host_memory
from planner.core.kv_cache import KvCachePlan
from planner.core.layout import Layout
from planner.core.memory_rules import memory_reasons, start_reasons
from planner.core.model import Model
from planner.core.rules import Case, broken_rules
from planner.core.scope import require_in_scope, require_planned_device
from planner.core.served_model import as_served, redundant_experts
from planner.core.slack import Slack, runtime_slack
from planner.core.speculation import speculation_of
from planner.core.terms import Interval, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: `gpu_count` is a cap, `free_bytes` the memory free at start (None: an otherwise empty GPU).

    `draft` is the model that the command names to draft with, where it is known.
    """

    model: Model
    gpu: Gpu
    gpu_count: int | None = None
    facts: EngineFacts
    args: EngineArgs
    fit: Fit
    free_bytes: int | None = None
    requests: tuple[RequestClass, ...] = ()
    draft: Model | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCache:
    """The cache of one replica: bytes of the rank that binds, blocks and tokens with the interval of the bytes.

    `bytes_per_token` is what one more token costs; `costs` what a request takes of each group of layers; `why` says why
    the two do not simply follow from each other, "" where they do.
    """

    available: Interval
    bytes_per_token: int
    bytes_per_token_per_rank: int
    bytes_per_block: int = 0
    blocks_per_request: int = 0
    groups: tuple[CacheGroup, ...] = ()
    costs: tuple[GroupCost, ...] = ()
    block_size: int
    num_gpu_blocks: int
    low_blocks: int
    high_blocks: int
    tokens: int
    low_tokens: int
    high_tokens: int
    max_concurrency: float
    max_model_len: int
    binding_rank: int
    formula: str
    why: str = ""

    @property
    def pool(self) -> Pool:
        """The block pool of one replica, at the interval's low, central and high end."""
        return Pool(
            block_size=self.block_size,
            num_gpu_blocks=self.num_gpu_blocks,
            low_blocks=self.low_blocks,
            high_blocks=self.high_blocks,
            groups=self.costs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The answer; `kv_cache`, `capacity`, `slack` and `free` are None when vLLM stops before it sizes the cache.

    `host` is what each node's host keeps for the GPUs, None where that is nothing; `free` what is free at start.
    """

    verdict: str
    summary: str
    reasons: tuple[Reason, ...]
    warnings: tuple[Reason, ...]
    engine: ResolvedArgs
    layout: Layout
    ranks: tuple[RankBudget, ...]
    kv_cache: KvCache | None
    capacity: Capacity | None
    slack: Slack | None
    host: HostMemory | None = None
    free: FreeMemory | None = None


def estimate(question: Question) -> Estimate:
    """Return what vLLM would do with this command here: boot and how well, or refuse and why.

    Raises Unknown when a flag's effect on memory cannot be derived, BadInput for a value that is no value at all.
    """
    case = case_of(question)
    broken = broken_rules(case)
    refusals = tuple(reason for reason in broken if reason.level != "warn")
    warnings = tuple(reason for reason in broken if reason.level == "warn")
    if refusals:
        return _refused(case.resolved, case.layout, refusals, warnings)
    return _sized(question, case.resolved, case.layout, warnings)


def case_of(question: Question) -> Case:
    """Return what the rules look at: the question with its command resolved and laid out; raises as `estimate` does."""
    require_planned_device(question.gpu)
    resolved = resolve(question.args, model=question.model, gpu=question.gpu, facts=question.facts)
    layout = Layout(
        tensor_parallel_size=resolved.tensor_parallel_size,
        pipeline_parallel_size=resolved.pipeline_parallel_size,
        data_parallel_size=resolved.data_parallel_size,
        layers_per_stage=resolved.layers_per_stage,
        enable_expert_parallel=bool(question.args.enable_expert_parallel),
        redundant_experts=redundant_experts(question.args),
    )
    return Case(
        model=question.model,
        gpu=question.gpu,
        gpu_count=question.gpu_count,
        facts=question.facts,
        args=question.args,
        resolved=resolved,
        layout=layout,
        requests=question.requests,
        draft=question.draft,
    )


def situations_of(question: Question, resolved: ResolvedArgs, layout: Layout) -> tuple[Situation, ...]:
    """Return what each pipeline stage runs, in order; raises Unknown where a flag's memory cannot be derived."""
    require_in_scope(question.args, question.model, question.facts)
    model = as_served(question.model, question.args, question.facts.version)
    drafter = drafter_in(question, resolved)
    return tuple(
        Situation(
            model=model,
            gpu=question.gpu,
            facts=question.facts,
            args=resolved,
            layout=layout,
            pp_stage=stage,
            drafter=drafter,
        )
        for stage in range(layout.pipeline_parallel_size)
    )


def drafter_in(question: Question, resolved: ResolvedArgs) -> Drafter | None:
    """Return what drafts beside the model, None without speculation; an unplanned drafter is Unknown."""
    target = Target(
        model=as_served(question.model, question.args, question.facts.version),
        stages=resolved.pipeline_parallel_size,
        max_model_len=resolved.max_model_len,
        version=question.facts.version,
    )
    return drafter_of(target, speculation_of(question.args), draft=question.draft)


def design_of(question: Question, last: Situation) -> CacheDesign:
    """Return how the caches are grouped; what drafts keeps its own beside the last stage's."""
    drafted = last.drafter.layers if last.drafter else ()
    return cache_design(
        last.model,
        args=question.args,
        resolved=last.args,
        gpu=question.gpu,
        facts=question.facts,
        layout=last.layout,
        extra_layers=[layer.caches for layer in drafted],
    )


def _refused(
    resolved: ResolvedArgs, layout: Layout, refusals: tuple[Reason, ...], warnings: tuple[Reason, ...]
) -> Estimate:
    return Estimate(
        verdict="refused",
        summary=f"vLLM refuses this: {refusals[0].message}",
        reasons=refusals,
        warnings=warnings,
        engine=resolved,
        layout=layout,
        ranks=(),
        kv_cache=None,
        capacity=None,
        slack=None,
    )


def _as_reason(stop: Refusal) -> Reason:
    return Reason(rule=stop.rule, field=stop.field, message=stop.message, remedy=stop.fix, level="refuse")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """What an answer is made of: each stage's situation and budget, how the caches are grouped, what is free."""

    situations: tuple[Situation, ...]
    stages: tuple[StageBudget, ...]
    design: CacheDesign
    free: FreeMemory


def sizing_of(question: Question, resolved: ResolvedArgs, layout: Layout) -> Sizing:
    """Return the budget and the caches of a deployment that no rule refuses.

    Raises Refusal where vLLM stops at the caches, Unknown where their bytes cannot be derived.
    """
    situations = situations_of(question, resolved, layout)
    return Sizing(
        situations=situations,
        stages=tuple(stage_budget(situation, question.fit) for situation in situations),
        design=design_of(question, situations[-1]),
        free=free_memory(question.gpu, layout, question.facts, question.free_bytes),
    )


def _sized(question: Question, resolved: ResolvedArgs, layout: Layout, warnings: tuple[Reason, ...]) -> Estimate:
    try:
        sizing = sizing_of(question, resolved, layout)
    except Refusal as stop:
        return _refused(resolved, layout, (_as_reason(stop),), warnings)
    situations, stages, design, free = sizing.situations, sizing.stages, sizing.design, sizing.free
    plan = design.plan([stage.available.bytes - resolved.frontend_bytes for stage in stages])
    kv_cache = _kv_cache(design, plan, layout, stages, resolved.frontend_bytes)
    stops = memory_reasons(situations, stages, plan, free, question.fit)
    reasons = (*start_reasons(situations[0], free), *stops)
    hard = tuple(reason for reason in reasons if reason.level != "warn")
    soft = (*warnings, *(reason for reason in reasons if reason.level == "warn"), *_doubts(kv_cache, plan, hard))
    slacks = [slack for s, b in zip(situations, stages, strict=True) if (slack := runtime_slack(s, b))]
    pool = kv_cache.pool
    ranks = tuple(rank_budget(rank, stages[rank.pp_stage]) for rank in layout.ranks)
    return Estimate(
        verdict="does_not_fit" if hard else "fits",
        summary=f"Does not fit: {hard[0].message}" if hard else _fits_sentence(pool, plan, resolved, question),
        reasons=hard,
        warnings=soft,
        engine=resolved,
        layout=layout,
        ranks=ranks,
        kv_cache=kv_cache,
        capacity=capacity_of(question.model, question.requests, layout, stages, plan, pool, design),
        slack=min(slacks, key=lambda slack: slack.outside_bytes - slack.needed_bytes) if slacks else None,
        host=host_memory(situations, question.args, kv_bytes_per_token_per_rank=kv_cache.bytes_per_token_per_rank),
        free=free,
    )


def _kv_cache(
    design: CacheDesign, plan: KvCachePlan, layout: Layout, stages: tuple[StageBudget, ...], frontend_bytes: int
) -> KvCache:
    low = design.plan([stage.available.low_bytes - frontend_bytes for stage in stages])
    high = design.plan([stage.available.high_bytes - frontend_bytes for stage in stages])
    available = stages[plan.binding_stage].available
    return KvCache(
        available=available,
        bytes_per_token=design.replica_bytes_per_token(),
        bytes_per_token_per_rank=design.bytes_per_token(plan.binding_stage),
        bytes_per_block=plan.bytes_per_block,
        blocks_per_request=plan.blocks_per_request,
        groups=design.shown_groups(plan.max_model_len),
        costs=design.costs(plan.max_model_len),
        block_size=plan.block_size,
        num_gpu_blocks=plan.num_gpu_blocks,
        low_blocks=low.num_gpu_blocks,
        high_blocks=high.num_gpu_blocks,
        tokens=plan.tokens,
        low_tokens=low.tokens,
        high_tokens=high.tokens,
        max_concurrency=plan.max_concurrency,
        max_model_len=plan.max_model_len,
        binding_rank=plan.binding_stage * layout.tensor_parallel_size,
        formula=block_formula(available.bytes, design.groups.stages[plan.binding_stage], plan),
        why=why_they_differ(design.groups.groups, plan, design.bounds),
    )


def _doubts(kv_cache: KvCache, plan: KvCachePlan, hard: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """A verdict that turns within the interval says so."""
    enough_at_low = kv_cache.low_blocks > kv_cache.blocks_per_request
    if hard or enough_at_low or kv_cache.available.exact:
        return ()
    return (
        Reason(
            rule="kv_one_request",
            field="max_model_len",
            message="the low end of the interval would not hold one request of full length: a boot may be refused.",
            remedy="lower max_model_len or raise gpu_memory_utilization a little, or calibrate",
            level="warn",
        ),
    )


def _fits_sentence(pool: Pool, plan: KvCachePlan, resolved: ResolvedArgs, question: Question) -> str:
    count = min(requests_at_once(pool, plan.max_model_len).requests, resolved.max_num_seqs)
    replicas = f" on each of {resolved.data_parallel_size} replicas" if resolved.data_parallel_size > 1 else ""
    noun = "request" if count == 1 else "requests"
    return f"Fits, and holds {count:,} {noun} of {plan.max_model_len:,} tokens at once{replicas}."
