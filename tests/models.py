"""The models that tests and benches plan and deploy: a config, and facts by shape."""

from __future__ import annotations

from bowsprit.facts.model import Divisor, KvCache, KvKind, Layer, ModelFacts

LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
"""config.json of Llama-3.1-8B, as far as planning reads it: it fits on one GPU of 80 GB."""


def transformer(
    name: str,
    *,
    layers: int,
    hidden: int,
    inner: int,
    heads: int,
    vocabulary: int,
    kv_heads: int = 8,
    experts: int = 0,
    active: int = 1,
) -> ModelFacts:
    """Facts of a bfloat16 decoder, dense or with routed experts."""
    width = hidden // heads
    mlp = 3 * hidden * inner * 2
    layer = Layer(
        sharded_bytes=4 * heads * width * hidden + (0 if experts else mlp),
        kv_projection_bytes=4 * kv_heads * width * hidden,
        expert_bytes=mlp * experts,
        replicated_bytes=4 * hidden + 2 * experts * hidden,
        kv=KvCache(KvKind.FULL, kv_heads, 2 * width),
    )
    return ModelFacts(
        digest=name,
        architecture=f"{name}ForCausalLM",
        layers=(layer,) * layers,
        embedding_bytes=2 * vocabulary * hidden,
        head_bytes=2 * vocabulary * hidden,
        tied=False,
        extra_bytes=0,
        hidden_size=hidden,
        intermediate_size=inner * active,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=width,
        vocab_size=vocabulary,
        experts=experts,
        dtype="bfloat16",
        dtype_bytes=2,
        kv_dtype_bytes=2,
        quantization=None,
        max_model_len=131072,
        divisors=(Divisor("intermediate_size", inner),),
        expert_parallel_divisors=(),
    )
