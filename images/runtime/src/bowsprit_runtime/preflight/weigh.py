"""Adds up what a model weighs on one rank: layers in runs of equal size, the two ends, and the rest.

Pure but for torch's names: it walks a module tree that was built without storage, so each figure is what the
engine will allocate for parameters and buffers, before kernels repack anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_NUMBERED = re.compile(r"^(.*?)\.(\d+)(?:\.|$)")
_EMBEDDINGS = re.compile(r"(^|\.)(embed_tokens|wte|word_embeddings|embed_in|tok_embeddings|embeddings)(\.|$)")
_HEADS = re.compile(r"(^|\.)(lm_head|embed_out|output|head)(\.|$)")


def weights(model: Any, layers: int) -> dict[str, Any]:
    """The report's `weights` of one tensor parallel size. `layers` is how many the configuration counts."""
    tensors = list(_tensors(model))
    stack = _stack(tensors, layers)
    per_layer: dict[int, int] = {}
    ends = {"embedding": 0, "head": 0, "other": 0}
    tied = False
    for names, size in tensors:
        places = [_layer(name, stack) for name in names]
        if None not in places:
            inside = {place for place in places if place is not None}
            if len(inside) == 1:
                index = inside.pop()
                per_layer[index] = per_layer.get(index, 0) + size
                continue
        kinds = {_end(name, model) for name in names}
        if {"embedding", "head"} <= kinds:
            tied = True
            ends["head"] += size
        ends[next(kind for kind in ends if kind in kinds)] += size
    return {"layers": _runs([per_layer[index] for index in sorted(per_layer)]), **ends, "tied": tied}


def _tensors(model: Any) -> Iterator[tuple[list[str], int]]:
    """Every parameter and buffer once, with all the names that it is known by."""
    names: dict[int, list[str]] = {}
    sizes: dict[int, int] = {}
    keep: list[Any] = []
    for tensors in (
        model.named_parameters(remove_duplicate=False),
        model.named_buffers(remove_duplicate=False),
    ):
        for name, tensor in tensors:
            keep.append(tensor)
            names.setdefault(id(tensor), []).append(name)
            sizes[id(tensor)] = tensor.numel() * tensor.element_size()
    for key, size in sizes.items():
        yield names[key], size


def _stack(tensors: list[tuple[list[str], int]], layers: int) -> str:
    """The name before the number of a decoder layer: as many as configured, and of those the heaviest."""
    weight: dict[str, int] = {}
    indices: dict[str, set[int]] = {}
    for names, size in tensors:
        found = _NUMBERED.match(names[0])
        if found:
            weight[found[1]] = weight.get(found[1], 0) + size
            indices.setdefault(found[1], set()).add(int(found[2]))
    fitting = [name for name in weight if len(indices[name]) == layers] or list(weight)
    return max(fitting, key=lambda name: weight[name], default="")


def _layer(name: str, stack: str) -> Any:
    found = _NUMBERED.match(name)
    return int(found[2]) if found and found[1] == stack else None


def _end(name: str, model: Any) -> str:
    """By vLLM's own kinds of module, and by custom where a plugin uses torch's."""
    module = model.get_submodule(name.rpartition(".")[0])
    kinds = {kind.__name__ for kind in type(module).__mro__}
    if "ParallelLMHead" in kinds:
        return "head"
    if "VocabParallelEmbedding" in kinds:
        return "embedding"
    if "Embedding" in kinds and _EMBEDDINGS.search(name):
        return "embedding"
    return "head" if "Linear" in kinds and _HEADS.search(name) else "other"


def _runs(sizes: list[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for size in sizes:
        if runs and runs[-1][1] == size:
            runs[-1][0] += 1
        else:
            runs.append([1, size])
    return runs
