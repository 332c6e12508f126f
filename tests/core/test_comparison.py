"""Plans side by side: expected differences are sums anyone can do in the head."""

from planner.core.comparison import compare, tightest_rank


def a_document(*, utilization=0.9, kv_bytes=100, tokens=1600, verdict="fits", total_bytes=300):
    terms = [{"name": "weights", "bytes": 80}, {"name": "kv_cache", "bytes": kv_bytes}]
    return {
        "verdict": verdict,
        "model": {"name": "m"},
        "gpu": {"name": "g", "count": 1},
        "engine": {"version": "0.32.0", "given": [], "gpu_memory_utilization": utilization, "enforce_eager": False},
        "ranks": [{"rank": 0, "total_bytes": total_bytes, "terms": terms}],
        "kv_cache": {"available_bytes": kv_bytes, "tokens": tokens, "binding_rank": 0},
        "capacity": {"requests_at_max_model_len": {"requests": 4}, "mix": None},
        "slack": {"verdict": "ample", "outside_bytes": 20},
    }


def refused():
    return {**a_document(verdict="refused"), "ranks": [], "kv_cache": None, "capacity": None, "slack": None}


def row(comparison, name):
    return next(row for row in comparison.rows if row.name == name)


def test_rows_that_differ_come_first():
    rows = compare([a_document(), a_document(utilization=0.8, kv_bytes=70)]).rows
    differs = [row.differs for row in rows]
    assert differs == sorted(differs, reverse=True)
    assert {row.name for row in rows if row.differs} == {"gpu_memory_utilization", "available KV cache"}


def test_differences_are_signed_against_the_first_plan():
    comparison = compare([a_document(kv_bytes=100), a_document(kv_bytes=70), a_document(kv_bytes=130)])
    assert row(comparison, "available KV cache").differences == (0, -30, 30)


def test_requests_at_once_are_read_from_their_count():
    assert row(compare([a_document()]), "requests at max_model_len").values == (4,)


def test_words_and_switches_have_no_difference_to_subtract():
    comparison = compare([a_document(), a_document(verdict="does_not_fit")])
    assert row(comparison, "verdict").differences == (None, None)
    assert row(comparison, "enforce_eager").differences == (None, None)


def test_a_refused_plan_has_no_sizes_and_breaks_nothing():
    comparison = compare([a_document(kv_bytes=100), refused()])
    kv = next(term for term in comparison.terms if term.name == "kv_cache")
    assert kv.values == (100, None)
    assert kv.differences == (0, None)
    assert comparison.scale_bytes == 300


def test_bars_share_the_largest_total():
    assert compare([a_document(total_bytes=300), a_document(total_bytes=500)]).scale_bytes == 500


def test_the_rank_that_bounds_the_cache_speaks_for_a_plan():
    document = a_document()
    document["ranks"].append({"rank": 1, "total_bytes": 300, "terms": []})
    document["kv_cache"]["binding_rank"] = 1
    assert tightest_rank(document)["rank"] == 1


def test_the_engine_version_is_shown_once_and_the_list_of_given_flags_never():
    names = [row.name for row in compare([a_document(), a_document()]).rows]
    assert "given" not in names
    assert "version" not in names
    assert names.count("vllm_version") == 1
