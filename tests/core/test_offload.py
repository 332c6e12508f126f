"""Weights in host memory: by vLLM's own order of layers and parameters, counted by hand for Llama 3 8B."""

from dataclasses import replace

import pytest

from planner import catalog
from planner.core.estimate import case_of, estimate, situations_of
from planner.core.host_memory import host_memory
from planner.core.offload import offload_request, offloaded
from planner.core.units import GIB
from planner.readers.command import read_fields
from tests.core.questions import A100, H100, ask

QKV, OUT = 6144 * 4096 * 2, 4096 * 4096 * 2
UP, DOWN = 2 * 14336 * 4096 * 2, 14336 * 4096 * 2
NORMS = 2 * 4096 * 2
LAYER = QKV + OUT + UP + DOWN + NORMS
KV_OF_A_TOKEN = 32 * 8 * 2 * 128 * 2


def asked(device=H100, version="0.32.0", **flags):
    facts = catalog.engine_facts(version)
    return replace(ask(device=device, facts=facts), args=read_fields(flags, version=facts.version, model="m"))


def stages(question):
    case = case_of(question)
    return situations_of(question, case.resolved, case.layout)


def moved(**flags):
    situation = stages(asked(**flags))[0]
    return offloaded(situation, situation.args.offload)


class TestByBytes:
    def test_layers_leave_in_order_until_the_parameter_that_reaches_the_limit(self):
        """1 GiB: two layers of 416 MiB and of the third its attention and its upward projection."""
        assert moved(cpu_offload_gb=1).host_bytes == 2 * LAYER + QKV + OUT + UP

    def test_no_more_than_the_layers_leaves(self):
        assert moved(cpu_offload_gb=100).host_bytes == 32 * LAYER

    def test_the_limit_is_each_ranks(self):
        """At TP 2 a rank's matrices are half as large: four layers leave, and of the fifth all but the norms."""
        rank_layer = (LAYER - NORMS) // 2 + NORMS
        held = moved(cpu_offload_gb=1, tensor_parallel_size=2).host_bytes
        assert held == 5 * rank_layer - NORMS

    def test_the_gpu_has_what_left_for_its_cache(self):
        with_it, without = estimate(asked(cpu_offload_gb=1)), estimate(asked())
        gained = with_it.kv_cache.available.bytes - without.kv_cache.available.bytes
        assert gained == moved(cpu_offload_gb=1).host_bytes

    def test_nothing_asked_for_is_nothing_moved(self):
        assert stages(asked(cpu_offload_gb=0))[0].args.offload is None


class TestByLayers:
    def test_the_last_layers_of_each_group_leave_and_one_stays_as_a_buffer(self):
        """32 layers in groups of 4, 2 of each: 16 leave; one step ahead needs room for one."""
        answer = moved(offload_group_size=4, offload_num_in_group=2)
        assert (answer.host_bytes, answer.buffer_bytes) == (16 * LAYER, LAYER)

    def test_every_step_ahead_needs_a_buffer_more(self):
        answer = moved(offload_group_size=8, offload_prefetch_step=3)
        assert (answer.host_bytes, answer.buffer_bytes) == (4 * LAYER, 3 * LAYER)

    def test_groups_come_before_bytes_unless_a_backend_is_named(self):
        both = {"cpu_offload_gb": 1, "offload_group_size": 4}
        assert stages(asked(**both))[0].args.offload.backend == "prefetch"
        assert stages(asked(**both, offload_backend="uva"))[0].args.offload.backend == "uva"

    def test_groups_are_not_there_before_0_17(self):
        args = replace(asked(cpu_offload_gb=1).args, other=(("offload_group_size", "4"),))
        assert offload_request(args, catalog.engine_facts("0.16.0").version).backend == "uva"


def host(question):
    return host_memory(stages(question), question.args, kv_bytes_per_token_per_rank=KV_OF_A_TOKEN)


class TestHost:
    def test_without_offloading_the_host_holds_nothing(self):
        assert host(asked()) is None

    def test_every_rank_keeps_its_own_weights(self):
        """Two replicas of two ranks: four times what one rank moves."""
        question = asked(cpu_offload_gb=1, tensor_parallel_size=2, data_parallel_size=2)
        rank = stages(question)[0]
        assert host(question).bytes == 4 * offloaded(rank, rank.args.offload).host_bytes

    def test_two_nodes_share_them(self):
        one, two = (
            asked(cpu_offload_gb=1, tensor_parallel_size=2),
            asked(cpu_offload_gb=1, tensor_parallel_size=2, nnodes=2),
        )
        assert host(two).bytes == host(one).bytes // 2

    def test_a_kv_tier_is_for_all_ranks_of_a_replica_and_changes_no_block(self):
        question = asked(kv_offloading_size=64, tensor_parallel_size=2)
        assert host(question).bytes == 64 * GIB
        assert (
            estimate(question).kv_cache.num_gpu_blocks
            == estimate(asked(tensor_parallel_size=2)).kv_cache.num_gpu_blocks
        )

    def test_a_step_takes_as_long_as_pcie_takes_to_move_the_weights(self):
        """16 lanes of PCIe 4.0 carry 31.5 GB/s at best."""
        question = asked(catalog.find_gpu("a100-sxm4-80gb"), cpu_offload_gb=8)
        answer = host(question)
        assert answer.step_seconds == pytest.approx(answer.bytes / 31.504e9)
        assert "tokens a second" in answer.sentence

    def test_the_link_of_a_grace_hopper_is_its_own(self):
        """NVLink-C2C: 900 GB/s in both directions together."""
        assert host(asked(catalog.find_gpu("GH200 96GB"), cpu_offload_gb=8)).link_bytes_per_second == 450e9

    def test_a_full_request_comes_back_over_the_link(self):
        """8,192 tokens of 128 KiB: 1 GiB over 63 GB/s of PCIe 5.0."""
        answer = host(asked(catalog.find_gpu("h100-sxm5-80gb"), kv_offloading_size=64))
        assert answer.refill_seconds == pytest.approx(GIB / 63.008e9)

    def test_a_device_whose_link_is_not_known_gets_no_time(self):
        assert host(asked(A100, cpu_offload_gb=1)).step_seconds is None
