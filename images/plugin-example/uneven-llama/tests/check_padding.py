"""What happens to each tensor of a checkpoint with biases, on 3 ranks; needs torch: test_padding.py runs it.

4 heads of 2, 2 KV heads, an MLP of 5 and 3 words become 6 heads, 3 KV heads, an MLP of 192 and 192 words.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch

from uneven_llama.padding import Padding

CONFIG = SimpleNamespace(
    hidden_size=8, head_dim=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=5, vocab_size=3
)
CHECKPOINT = {
    "model.layers.0.self_attn.q_proj.weight": (8, 8),
    "model.layers.0.self_attn.q_proj.bias": (8,),
    "model.layers.0.self_attn.k_proj.bias": (4,),
    "model.layers.0.self_attn.o_proj.weight": (8, 8),
    "model.layers.0.self_attn.o_proj.bias": (8,),
    "model.layers.0.mlp.up_proj.bias": (5,),
    "model.layers.0.mlp.down_proj.weight": (8, 5),
    "model.layers.0.mlp.down_proj.bias": (8,),
    "model.layers.0.input_layernorm.weight": (8,),
    "model.embed_tokens.weight": (3, 8),
    "lm_head.weight": (3, 8),
}
PADDED = {
    **CHECKPOINT,
    "model.layers.0.self_attn.q_proj.weight": (12, 8),
    "model.layers.0.self_attn.q_proj.bias": (12,),
    "model.layers.0.self_attn.k_proj.bias": (6,),
    "model.layers.0.self_attn.o_proj.weight": (8, 12),
    "model.layers.0.mlp.up_proj.bias": (192,),
    "model.layers.0.mlp.down_proj.weight": (8, 192),
    "model.embed_tokens.weight": (192, 8),
    "lm_head.weight": (192, 8),
}


def main() -> None:
    tensors = {name: 1 + torch.rand(shape) for name, shape in CHECKPOINT.items()}
    padding = Padding.of(CONFIG, 3)
    padded = dict(padding.weights(tensors.items()))
    assert {name: tuple(tensor.shape) for name, tensor in padded.items()} == PADDED
    for name, tensor in tensors.items():
        # The real heads, columns and words come first here, in their order.
        torch.testing.assert_close(padded[name][tuple(slice(size) for size in tensor.shape)], tensor)
        assert padded[name].count_nonzero() == tensor.numel(), name

    config = padding.config(CONFIG)
    assert (config.num_attention_heads, config.num_key_value_heads, config.head_dim) == (6, 3, 2)
    assert CONFIG.num_attention_heads == 4

    plain = Padding.of(CONFIG, 1)
    assert all(one is tensors[name] for name, one in plain.weights(tensors.items()))


if __name__ == "__main__":
    main()
