"""Bytes of a rank out of a tree of modules, whatever its names are."""

from __future__ import annotations

from collections.abc import Iterator

from bowsprit_runtime.preflight.weigh import by_name, weights


class Tensor:
    def __init__(self, count: int, size: int = 2) -> None:
        self._count, self._size = count, size

    def numel(self) -> int:
        return self._count

    def element_size(self) -> int:
        return self._size


class Module:
    """What `weigh` asks of torch.nn.Module."""

    def __init__(self, tensors: dict[str, Tensor] | None = None, **children: Module) -> None:
        self.tensors, self.children = tensors or {}, children

    def named_parameters(self, *, remove_duplicate: bool) -> Iterator[tuple[str, Tensor]]:
        assert not remove_duplicate
        yield from self.tensors.items()
        for name, child in self.children.items():
            for inner, tensor in child.named_parameters(remove_duplicate=remove_duplicate):
                yield f"{name}.{inner}", tensor

    def named_buffers(self, *, remove_duplicate: bool) -> Iterator[tuple[str, Tensor]]:
        yield from ()

    def get_submodule(self, path: str) -> Module:
        return self.children[path.partition(".")[0]].get_submodule(path.partition(".")[2]) if path else self


class VocabParallelEmbedding(Module): ...


class ParallelLMHead(VocabParallelEmbedding): ...


class Embedding(Module): ...


class Linear(Module): ...


def layers(*counts: int, **more: Module) -> Module:
    return Module(None, **{str(i): Module({"w": Tensor(count)}, **more) for i, count in enumerate(counts)})


def test_layers_come_in_runs_and_the_ends_apart() -> None:
    model = Module(
        None,
        model=Module(
            None,
            embed_tokens=VocabParallelEmbedding({"weight": Tensor(100)}),
            layers=layers(5, 5, 7, 7, 7),
            norm=Module({"weight": Tensor(3)}),
        ),
        lm_head=ParallelLMHead({"weight": Tensor(100)}),
    )
    assert weights(model, 5) == {
        "layers": [[2, 10], [3, 14]],
        "embedding": 200,
        "head": 200,
        "other": 6,
        "tied": False,
    }


def test_a_tied_head_weighs_as_much_as_the_embedding() -> None:
    tied = Tensor(100)
    model = Module(
        None,
        layers=layers(1),
        embed_tokens=VocabParallelEmbedding({"weight": tied}),
        lm_head=ParallelLMHead({"weight": tied}),
    )
    told = weights(model, 1)
    assert (told["embedding"], told["head"], told["tied"]) == (200, 200, True)


def test_the_same_module_as_both_ends_is_the_embedding() -> None:
    embedding = VocabParallelEmbedding({"weight": Tensor(100)})
    told = weights(Module(None, layers=layers(1), embed_tokens=embedding, lm_head=embedding), 1)
    assert told["embedding"] == 200
    assert told["other"] == 0


def test_what_all_layers_share_belongs_to_none() -> None:
    rope = Module({"cos_sin_cache": Tensor(50)})
    told = weights(Module(None, layers=layers(1, 1, rope=rope)), 2)
    assert (told["layers"], told["other"]) == ([[2, 2]], 100)


def test_the_tower_of_another_depth_is_no_layer_of_the_decoder() -> None:
    model = Module(None, visual=Module(None, blocks=layers(1000, 1000, 1000)), layers=layers(1, 1))
    told = weights(model, 2)
    assert (told["layers"], told["other"]) == ([[2, 2]], 6000)


def test_plain_torch_modules_are_known_by_name() -> None:
    model = Module(
        None, h=layers(1), wte=Embedding({"weight": Tensor(10)}), lm_head=Linear({"weight": Tensor(20)})
    )
    told = weights(model, 1)
    assert (told["embedding"], told["head"]) == (20, 40)


def test_experts_are_numbered_inside_of_a_layer() -> None:
    layer = [Module({"w": Tensor(1)}, experts=layers(4, 4, 4)) for _ in range(2)]
    told = weights(Module(None, layers=Module(None, **{"0": layer[0], "1": layer[1]})), 2)
    assert told["layers"] == [[2, 26]]


LLAMA = {
    "model.embed_tokens.weight": 100,
    "model.layers.0.mlp.experts.0.up.weight": 5,
    "model.layers.0.mlp.experts.1.up.weight": 5,
    "model.layers.1.mlp.up.weight": 7,
    "model.norm.weight": 1,
    "lm_head.weight": 90,
}


def test_a_checkpoint_is_added_up_by_its_names() -> None:
    assert by_name(LLAMA, 2) == {"layers": [[1, 10], [1, 7]], "embedding": 100, "head": 90, "other": 1}


def test_layers_that_guess_tokens_ahead_are_left_out_with_their_ends() -> None:
    more = {"model.layers.2.embed_tokens.weight": 100, "model.layers.2.shared_head.head.weight": 90}
    assert by_name({**LLAMA, **more}, 2) == by_name(LLAMA, 2)


def test_a_tower_is_no_layer_and_no_end_whatever_its_depth() -> None:
    tower = {
        "visual.blocks.0.w.weight": 3,
        "visual.blocks.1.attention.output.dense.weight": 3,
        "visual.embeddings.patch_embedding.weight": 2,
    }
    assert by_name({**LLAMA, **tower}, 2) == {**by_name(LLAMA, 2), "other": 9}


def test_names_of_other_families() -> None:
    names = {"tok_embeddings.weight": 4, "layers.0.w.weight": 2, "output.weight": 3}
    assert by_name(names, 1) == {"layers": [[1, 2]], "embedding": 4, "head": 3, "other": 0}
    assert by_name({"transformer.wte.weight": 4, "transformer.h.0.w": 2}, 1)["embedding"] == 4
