"""The layer split of pipeline stages, as vLLM's get_pp_indices makes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.core.errors import BadInput
from planner.core.layout import Layout, parse_partition, pipeline_split


def test_even_layers_are_split_evenly():
    assert pipeline_split(32, 4) == (8, 8, 8, 8)


def test_a_remainder_goes_before_the_last_stage():
    """Gemma-sized 62 layers on 4 stages: 15 each and two left over, for the third and the second."""
    assert pipeline_split(62, 4) == (15, 16, 16, 15)


def test_the_first_stage_takes_one_only_when_all_between_have_theirs():
    assert pipeline_split(11, 4) == (3, 3, 3, 2)


@given(st.integers(1, 200), st.integers(1, 16))
def test_stages_hold_every_layer_once(layers, stages):
    split = pipeline_split(layers, stages)
    assert sum(split) == layers
    assert len(split) == stages
    assert max(split) - min(split) <= 1


def test_a_partition_by_hand_is_read():
    assert parse_partition("20,20,21,19", num_layers=80, stages=4) == (20, 20, 21, 19)


def test_a_partition_that_is_no_list_of_numbers_names_the_variable():
    with pytest.raises(BadInput, match="VLLM_PP_LAYER_PARTITION"):
        parse_partition("20;20", num_layers=40, stages=2)


def test_ranks_are_numbered_with_tensor_ranks_fastest():
    layout = Layout(tensor_parallel_size=2, pipeline_parallel_size=2, data_parallel_size=1, layers_per_stage=(16, 16))
    assert [(rank.rank, rank.pp_stage, rank.tp_rank) for rank in layout.ranks] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 1, 0),
        (3, 1, 1),
    ]
