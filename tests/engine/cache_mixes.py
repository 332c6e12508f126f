"""Draws questions about the KV cache: the mixes of layers that models have, and what nobody has built yet."""

GIB = 1 << 30
MIB = 1 << 20


def attention(draw, kind="full_attention", **fields):
    """Return an attention layer's spec."""
    head_size = draw.choice([64, 80, 96, 128, 192, 256])
    return {
        "kind": kind,
        "block_size": draw.choice([16, 16, 16, 32, 64, 128]),
        "num_kv_heads": draw.choice([1, 2, 4, 8]),
        "head_size": head_size,
        "head_size_v": head_size,
        "dtype": draw.choice(["bfloat16", "bfloat16", "float32", "float8_e4m3fn"]),
        "dcp_sharded": True,
        **fields,
    }


def latent(draw, kind="mla_attention", **fields):
    """Return a latent cache's spec: one vector a token, no values beside it."""
    return attention(draw, kind, num_kv_heads=1, head_size_v=0, **{"head_size": 576, **fields})


def window(draw, like, **fields):
    """Return a layer with a window and else like another."""
    return {**like, "kind": "sliding_window", "sliding_window": draw.choice([128, 512, 1024, 4096]), **fields}


def state(draw, **fields):
    """Return a recurrent state's spec."""
    return {
        "kind": "mamba",
        "block_size": draw.choice([16, 512, 1 << 20]),
        "state_bytes": draw.randint(1, 3 * MIB) // 16 * 16 + 16,
        "mamba_type": "mamba2",
        **fields,
    }


def uniform(draw):
    return [attention(draw)]


def other_heads(draw):
    first = attention(draw)
    return [first, {**first, "num_kv_heads": draw.choice([1, 2, 8]), "head_size": 128, "head_size_v": 128}]


def other_values(draw):
    return [attention(draw, head_size=192, head_size_v=128)]


def windows(draw):
    first = attention(draw)
    return [first, window(draw, first)]


def windows_alone(draw):
    first = window(draw, attention(draw))
    return [first] if draw.random() < 0.5 else [first, {**first, "num_kv_heads": 3}]


def two_windows(draw):
    first = attention(draw)
    return [first, window(draw, first), window(draw, first, sliding_window=2048)]


def windows_of_other_heads(draw):
    """Gemma 4: full attention has other heads; mostly the windows' own block makes the pages equal or does not."""
    first = attention(draw, head_size=512, head_size_v=512)
    other = draw.choice([(16, 256), (8, 256), (4, 128), (3, 96)])
    return [first, window(draw, first, num_kv_heads=other[0], head_size=other[1], head_size_v=other[1])]


def windows_in_blocks_of_their_own(draw):
    first = attention(draw, block_size=draw.choice([528, 1056, 64]))
    return [first, window(draw, first, block_size=draw.choice([16, 64]))]


def chunks(draw):
    first = attention(draw)
    chunked = {**first, "kind": "chunked_local_attention", "attention_chunk_size": draw.choice([2048, 8192])}
    return [first, chunked]


def latents(draw):
    return [latent(draw)]


def latents_and_indexers(draw):
    first = latent(draw)
    return [first, {**first, "head_size": 132, "dtype": "uint8", "cache_role": "indexer"}]


def packed_latents(draw):
    return [latent(draw, block_size=64, state_content_bytes=656, dtype="uint8", cache_role="sparse")]


def latents_and_windows(draw):
    """A latent target and a drafter with windows: pages that nothing makes equal fall back to full attention."""
    return [latent(draw, block_size=64), window(draw, attention(draw, block_size=64))]


def states_with_equal_pages(draw):
    first = attention(draw, block_size=draw.choice([272, 400, 544, 1072]))
    page = first["block_size"] * first["num_kv_heads"] * first["head_size"] * 2 * BYTES[first["dtype"]]
    size = draw.randint(page // 2, page)
    return [first, state(draw, state_bytes=size, block_size=first["block_size"], page_size_padded=page)]


def states_with_other_pages(draw):
    return [attention(draw), state(draw)]


def states_alone(draw):
    first = state(draw)
    return [first] if draw.random() < 0.5 else [first, {**first, "state_bytes": first["state_bytes"] + 4096}]


def states_and_windows(draw):
    first, second = states_with_equal_pages(draw)
    return [first, window(draw, first), second]


def states_with_drafts(draw):
    first, second = states_with_equal_pages(draw)
    return [first, {**second, "num_speculative_blocks": draw.choice([1, 3])}]


def states_with_checkpoints(draw):
    first, second = states_with_equal_pages(draw)
    return [first, {**second, "num_prefill_checkpoint_blocks": 1}]


def latents_and_states(draw):
    first = latent(draw, block_size=draw.choice([128, 256]), dtype="bfloat16")
    page = first["block_size"] * 576 * 2
    return [first, state(draw, state_bytes=page - 1024, page_size_padded=draw.choice([page, page, page + 512]))]


def encoders(draw):
    first = attention(draw)
    return [first, {**first, "kind": "cross_attention"}]


def compressed(draw):
    """DeepSeek V4: latents of every fourth and every 128th token, their indexers, windows and compressors' states."""
    packed = draw.random() < 0.5
    content = {"state_content_bytes": 584, "alignment": 576, "dtype": "uint8"} if packed else {"alignment": 512}
    base = {"num_kv_heads": 1, "head_size": 512, "head_size_v": 0, "dtype": "bfloat16", "dcp_sharded": True, **content}
    wide = {"kind": "mla_attention", "block_size": 256, **base, "model_version": "deepseek_v4"}
    states = {"kind": "sliding_window_mla", "num_kv_heads": 1, "head_size_v": 0, "dtype": "float32"}
    states |= {"alignment": content["alignment"], "model_version": "deepseek_v4", "dcp_sharded": True}
    return [
        {**base, "kind": "sliding_window_mla", "block_size": 64, "sliding_window": 128, "model_version": "deepseek_v4"},
        {**wide, "tokens_per_state": 4},
        {**wide, "tokens_per_state": 4, "head_size": 132, "dtype": "uint8", "cache_role": "indexer", **NO_CONTENT},
        {**states, "block_size": 4, "sliding_window": 8, "head_size": 2048},
        {**states, "block_size": 4, "sliding_window": 8, "head_size": 512},
        {**wide, "tokens_per_state": 128},
        {**states, "block_size": 8, "sliding_window": 128, "head_size": 1024},
    ]


def rings(draw):
    first = attention(draw)
    return [first, {**first, "kind": "circular_buffer", "block_size": 8}, window(draw, first)]


def replicas(draw):
    """A drafter whose cache every rank of context parallelism holds whole."""
    first = attention(draw)
    return [first, window(draw, first, dcp_sharded=False)]


def references(draw):
    return [attention(draw, "rswa", rswa_window=draw.choice([512, 1024]))]


def sinks(draw):
    first = attention(draw)
    return (
        [{**first, "kind": "sink_full_attention"}, window(draw, first)]
        if draw.random() < 0.5
        else [{**first, "kind": "sink_full_attention"}]
    )


def aligned(draw):
    """Sparse kernels read rows: blocks must lie whole rows apart."""
    row = draw.choice([576, 656, 1152])
    return [latent(draw, state_content_bytes=row, block_stride_alignment=row, cache_role="sparse")]


def anything(draw):
    makers = [uniform, windows, chunks, latents, states_with_other_pages, windows_alone, states_with_equal_pages]
    return [spec for maker in draw.sample(makers, 2) for spec in maker(draw)]


BYTES = {"bfloat16": 2, "float32": 4, "float8_e4m3fn": 1, "uint8": 1}
NO_CONTENT = {"state_content_bytes": 132}
MIXES = (
    uniform,
    other_heads,
    other_values,
    windows,
    windows_alone,
    two_windows,
    windows_of_other_heads,
    windows_in_blocks_of_their_own,
    chunks,
    latents,
    latents_and_indexers,
    packed_latents,
    latents_and_windows,
    states_with_equal_pages,
    states_with_other_pages,
    states_alone,
    states_and_windows,
    states_with_drafts,
    states_with_checkpoints,
    latents_and_states,
    encoders,
    compressed,
    rings,
    replicas,
    references,
    sinks,
    aligned,
    anything,
)


def rows_of(draw, count, kinds):
    """Return layers in a pattern: [how many in a row, of which spec]."""
    pattern = [[draw.choice([1, 1, 1, 2, 4]), index] for index in range(kinds)]
    if draw.random() < 0.3:
        draw.shuffle(pattern)
    rows = [list(row) for _ in range(count) for row in pattern]
    return [*rows, [1, draw.randrange(kinds)]] if draw.random() < 0.3 else rows


def question_of(draw, mix):
    """Return a question about a model with this mix of layers."""
    specs = mix(draw)
    count = draw.choice([1, 1, 1, 1, 2, 3])
    repeats = draw.choice([1, 2, 3, 5])
    question = {
        "specs": specs,
        "stages": [
            [draw.choice([draw.randint(1 << 22, GIB), draw.randint(GIB, 60 * GIB)]), rows_of(draw, repeats, len(specs))]
            for _ in range(count)
        ],
        "max_model_len": draw.choice([draw.randint(1, 5000), draw.randint(5000, 300_000)]),
        "in_flight_tokens": draw.choice([2048, 8192, 16384]),
    }
    return {**question, **settings_of(draw, mix, specs)}


def settings_of(draw, mix, specs):
    """Return the settings that now and then are not the usual ones."""
    kinds = {spec["kind"] for spec in specs}
    settings = {
        "auto": draw.random() < 0.15,
        "hybrid_manager": draw.random() < 0.8,
        "block_outermost": mix is compressed or draw.random() < (0.6 if mix is rings else 0.08),
        "context_parallel": draw.choice([1, 1, 1, 1, 1, 1, 2]),
        "mamba_cache_mode": draw.choice(["none", "align", "all"]) if "mamba" in kinds else "none",
        "encoder_tokens": draw.choice([8192, 1500]) if "cross_attention" in kinds else 8192,
        "override": draw.randint(1, 20_000) if draw.random() < 0.12 else None,
    }
    return {name: value for name, value in settings.items() if value != USUAL[name]}


USUAL = {
    "auto": False,
    "hybrid_manager": True,
    "block_outermost": False,
    "context_parallel": 1,
    "mamba_cache_mode": "none",
    "encoder_tokens": 8192,
    "override": None,
}
