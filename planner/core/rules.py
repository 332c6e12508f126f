"""What vLLM refuses before it measures any memory, in the order of a boot."""

from planner.core import rules_cache, rules_command, rules_model, rules_parallel, rules_quantisation
from planner.core.drafter_refusals import drafter_refusals
from planner.core.rule_case import Case as Case
from planner.core.rule_case import Rule
from planner.core.terms import Reason
from planner.core.tower_refusals import tower_refusals
from planner.core.weights import weight_refusals

RULES: tuple[Rule, ...] = (
    *rules_model.RULES,
    *rules_quantisation.RULES,
    *rules_parallel.RULES,
    *rules_command.RULES,
    *rules_cache.RULES,
)


def broken_rules(case: Case) -> tuple[Reason, ...]:
    """Return every refusal and warning of the stages before memory is measured, in the order of a boot."""
    found = [reason for rule in RULES if (reason := rule(case)) is not None]
    towers = tower_refusals(case.model, case.layout, towers=case.resolved.towers, version=case.version)
    drafter = drafter_refusals(case.draft, case.layout)
    return (*found, *weight_refusals(case.model, case.layout), *towers, *drafter)
