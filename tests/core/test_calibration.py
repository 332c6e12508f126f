"""The measured terms together: intervals, evidence, and what they say where few boots are known."""

import math
from dataclasses import replace

from planner.catalog.fitted import fit
from planner.core.calibration import measured_terms
from tests.core.facts import FACTS_032
from tests.core.questions import A100, LAPTOP, LLAMA_3_70B
from tests.core.situations import CODE_LLAMA_7B, situation


def terms_of(measured):
    return measured.activation, measured.non_torch, measured.cuda_graphs


def test_on_the_cpu_platform_all_three_are_zero_and_exact():
    measured = measured_terms(situation(device=LAPTOP, facts=FACTS_032), fit())
    assert [term.bytes for term in terms_of(measured)] == [0, 0, 0]
    assert all(term.exact for term in terms_of(measured))
    assert measured.overhead.exact


def test_every_interval_holds_its_central_value():
    for asked in (situation(), situation(LLAMA_3_70B, A100, FACTS_032, tensor_parallel_size=4)):
        for term in terms_of(measured_terms(asked, fit())):
            assert 0 <= term.low_bytes <= term.bytes <= term.high_bytes


def test_graphs_count_against_the_budget_only_from_0_20():
    before, since = measured_terms(situation(), fit()), measured_terms(situation(facts=FACTS_032), fit())
    assert not before.cuda_graphs.inside_budget
    assert before.overhead.bytes == before.activation.bytes + before.non_torch.bytes
    assert since.overhead.bytes == sum(term.bytes for term in terms_of(since))


def test_the_terms_together_are_surer_than_the_sum_of_their_extremes():
    measured = measured_terms(situation(LLAMA_3_70B, A100, FACTS_032, tensor_parallel_size=4), fit())
    sum_of_extremes = sum(term.high_bytes - term.bytes for term in terms_of(measured))
    together = measured.overhead.high_bytes - measured.overhead.bytes
    assert together < sum_of_extremes
    assert together >= max(term.high_bytes - term.bytes for term in terms_of(measured)) - 1


def test_a_device_and_version_seen_often_is_not_called_extrapolated():
    for term in terms_of(measured_terms(situation(), fit())):
        assert term.note == ""


def test_few_boots_widen_the_interval_and_the_term_says_so():
    seen = measured_terms(situation(), fit())
    unseen = measured_terms(situation(facts=FACTS_032), fit())
    for term in terms_of(unseen):
        assert term.note == "extrapolated: 0 boots of vLLM 0.32.0 on H100 SXM5 80GB known"
    share = [(t.high_bytes - t.low_bytes) / t.bytes for t in (seen.activation, unseen.activation)]
    assert share[1] > 2 * share[0]


def test_the_nearest_boots_come_first_in_the_evidence():
    # t002 is the boot of this very model, device and version; its neighbours share all but the model
    evidence = measured_terms(situation(CODE_LLAMA_7B), fit()).activation.evidence
    assert evidence[0] in {"t002", "t018", "t021", "t022"}
    assert len(evidence) == 6


def test_a_term_rests_on_known_boots():
    known = {boot.boot for boot in fit().evidence}
    for term in terms_of(measured_terms(situation(), fit())):
        assert term.evidence
        assert set(term.evidence) <= known


def test_the_overhead_adds_in_quadrature_where_nothing_is_scaled():
    asked = situation(LLAMA_3_70B, A100, FACTS_032, tensor_parallel_size=4)
    measured = measured_terms(asked, replace(fit(), unseen_share=0.0))
    expected = math.hypot(*(term.bytes - term.low_bytes for term in terms_of(measured)))
    assert abs(measured.overhead.bytes - measured.overhead.low_bytes - expected) <= 1


def test_where_few_boots_speak_the_overhead_is_as_wide_as_such_boots_lay_off():
    asked = situation(LLAMA_3_70B, A100, FACTS_032, tensor_parallel_size=4)
    measured = measured_terms(asked, replace(fit(), unseen_share=0.02))
    assert measured.overhead.high_bytes - measured.overhead.bytes >= round(0.02 * A100.total_bytes)
    assert measured.overhead.bytes - measured.overhead.low_bytes >= round(0.02 * A100.total_bytes)
