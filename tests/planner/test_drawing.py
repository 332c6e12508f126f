"""Drawings as text: bars in percent, curves on logarithmic axes."""

from planner.pages.drawing import context_curve, memory_bar, rank_groups


def a_rank(number=0, total=100, requested=90, graphs_inside=True, **sizes):
    sizes = {
        "weights": 40,
        "activation": 5,
        "non_torch": 2,
        "cuda_graphs": 3,
        "kv_cache": 40,
        "outside_budget": 10,
        **sizes,
    }
    terms = [
        {"name": name, "bytes": size, "low_bytes": size, "high_bytes": size, "inside_budget": name != "outside_budget"}
        for name, size in sizes.items()
    ]
    next(term for term in terms if term["name"] == "cuda_graphs")["inside_budget"] = graphs_inside
    return {"rank": number, "total_bytes": total, "requested_bytes": requested, "terms": terms}


def drawn(bar):
    return {segment.name: (float(segment.x[:-1]), float(segment.width[:-1])) for segment in bar.segments}


def test_terms_follow_one_another_and_fill_the_bar():
    assert drawn(memory_bar(a_rank())) == {
        "weights": (0, 40),
        "activation": (40, 5),
        "non_torch": (45, 2),
        "cuda_graphs": (47, 3),
        "kv_cache": (50, 40),
        "outside_budget": (90, 10),
    }


def test_the_budget_line_stands_where_the_budget_ends():
    assert memory_bar(a_rank(total=200, requested=150)).budget_x == "75.000%"


def test_graphs_outside_the_budget_are_drawn_beyond_its_line():
    bar = drawn(memory_bar(a_rank(graphs_inside=False, kv_cache=43)))
    assert bar["outside_budget"] == (90, 10)
    assert bar["cuda_graphs"] == (90, 3)


def test_terms_beyond_the_gpu_stretch_the_scale_and_cross_the_budget_line():
    bar = memory_bar(a_rank(weights=190, activation=5, non_torch=2, cuda_graphs=3, kv_cache=-110))
    assert drawn(bar)["weights"] == (0, 95)
    assert "kv_cache" not in drawn(bar)
    assert "outside_budget" not in drawn(bar)
    assert bar.budget_x == "45.000%"


def test_an_uncertain_cache_is_marked_where_it_may_begin():
    rank = a_rank()
    cache = next(term for term in rank["terms"] if term["name"] == "kv_cache")
    cache |= {"low_bytes": 38, "high_bytes": 41}
    uncertain = memory_bar(rank).uncertain
    assert (uncertain.x, uncertain.width) == ("49.000%", "3.000%")


def test_an_exact_cache_has_no_such_mark():
    assert memory_bar(a_rank()).uncertain is None


def test_equal_neighbours_are_one_group():
    groups = rank_groups([a_rank(0), a_rank(1), a_rank(2), a_rank(3, weights=30)])
    assert [(group.name, group.others, group.numbers) for group in groups] == [
        ("rank 0", "rank 1–2", (0, 1, 2)),
        ("rank 3", "", (3,)),
    ]


def a_point(tokens, requests, spread=0):
    return {
        "context_tokens": tokens,
        "requests": requests,
        "low_requests": requests - spread,
        "high_requests": requests + spread,
    }


def test_halving_capacity_with_doubling_context_is_a_straight_line():
    curve = context_curve([a_point(1024, 64), a_point(2048, 32), a_point(4096, 16)])
    assert curve.line == "M46.0 14.0 L239.0 115.0 L432.0 216.0"


def test_the_current_context_is_the_last_point_with_its_value():
    curve = context_curve([a_point(1024, 64), a_point(8192, 8)])
    assert (curve.now_x, curve.now_y, curve.now_label) == (432.0, 216.0, "8,192 tokens: 8")


def test_ticks_are_powers_of_two_in_binary_thousands():
    curve = context_curve([a_point(512, 64), a_point(2048, 16)])
    assert [tick.label for tick in curve.x_ticks] == ["512", "1k", "2k"]


def test_a_wide_range_gets_fewer_ticks_than_powers():
    curve = context_curve([a_point(256, 4096), a_point(1 << 20, 1)])
    assert [tick.label for tick in curve.x_ticks] == ["256", "1k", "4k", "16k", "64k", "256k", "1M"]


def test_none_at_once_lies_on_the_floor_of_the_drawing():
    curve = context_curve([a_point(1024, 4), a_point(8192, 0)])
    assert curve.now_y == 216.0


def test_nothing_is_drawn_where_nothing_fits():
    assert context_curve([a_point(1024, 0), a_point(8192, 0)]) is None


def test_one_length_is_no_curve():
    assert context_curve([a_point(256, 9)]) is None
