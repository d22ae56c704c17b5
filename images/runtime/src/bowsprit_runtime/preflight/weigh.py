"""Adds up what a model weighs on one rank: layers in runs of equal size, the two ends, and the rest.

Pure but for torch's names: it walks a module tree that was built without storage, so each figure is what the
engine will allocate for parameters and buffers, before kernels repack anything. A checkpoint, of which only
names and sizes are known, is added up alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Callable

_NUMBERED = re.compile(r"^(.*?)\.(\d+)(?:\.|$)")
_EMBEDDING = r"(^|\.)(embed_tokens|wte|word_embeddings|embed_in|tok_embeddings|embeddings)"
_HEAD = r"(^|\.)(lm_head|embed_out|output|head)"
_EMBEDDINGS, _HEADS = (re.compile(rf"{end}(\.|$)") for end in (_EMBEDDING, _HEAD))
_EMBEDDING_TENSORS, _HEAD_TENSORS = (re.compile(rf"{end}\.[^.]+$") for end in (_EMBEDDING, _HEAD))
"""Where there is no module to ask: towers have embeddings and outputs as well, deeper down."""


def weights(model: Any, layers: int) -> dict[str, Any]:
    """The report's `weights` of one tensor parallel size. `layers` is how many the configuration counts."""
    tensors = list(_tensors(model))
    stack = _stack(tensors, lambda indices: len(indices) == layers)
    return _added(tensors, stack, lambda name: _end(name, model))


def by_name(sizes: Mapping[str, int], layers: int) -> dict[str, Any]:
    """The same of a checkpoint, without `tied`: a tied head is not in it. Layers beyond those that the
    configuration counts are for guessing tokens ahead, and are not loaded."""
    tensors = [([name], size) for name, size in sizes.items()]
    stack = _stack(tensors, lambda indices: indices.issuperset(range(layers)))
    loaded = [each for each in tensors if (_layer(each[0][0], stack) or 0) < layers]
    added = _added(loaded, stack, _named_end)
    del added["tied"]
    return added


def _added(tensors: list[tuple[list[str], int]], stack: str, end: Callable[[str], str]) -> dict[str, Any]:
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
        kinds = {end(name) for name in names}
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


def _stack(tensors: list[tuple[list[str], int]], fits: Callable[[set[int]], bool]) -> str:
    """The name before the number of a decoder layer: of those whose numbers fit, the heaviest."""
    weight: dict[str, int] = {}
    indices: dict[str, set[int]] = {}
    for names, size in tensors:
        found = _NUMBERED.match(names[0])
        if found:
            weight[found[1]] = weight.get(found[1], 0) + size
            indices.setdefault(found[1], set()).add(int(found[2]))
    fitting = [name for name in weight if fits(indices[name])] or list(weight)
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


def _named_end(name: str) -> str:
    if _EMBEDDING_TENSORS.search(name):
        return "embedding"
    return "head" if _HEAD_TENSORS.search(name) else "other"


def _runs(sizes: list[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for size in sizes:
        if runs and runs[-1][1] == size:
            runs[-1][0] += 1
        else:
            runs.append([1, size])
    return runs
