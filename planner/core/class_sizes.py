"""The sizes that nearly every configuration class gives a default, in one order."""

from collections.abc import Mapping


def class_sizes(
    hidden_size: int,
    num_hidden_layers: int,
    num_attention_heads: int,
    num_key_value_heads: int,
    intermediate_size: int,
    vocab_size: int,
    max_position_embeddings: int,
    **others: object,
) -> Mapping[str, object]:
    """Return the defaults of a class: the sizes that all have, and `others` by name."""
    return {
        "hidden_size": hidden_size,
        "num_hidden_layers": num_hidden_layers,
        "num_attention_heads": num_attention_heads,
        "num_key_value_heads": num_key_value_heads,
        "intermediate_size": intermediate_size,
        "vocab_size": vocab_size,
        "max_position_embeddings": max_position_embeddings,
        **others,
    }
