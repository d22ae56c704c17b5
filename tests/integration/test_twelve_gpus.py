"""The case that Bowsprit was born from: three models on exactly twelve GPUs, from examples/twelve-gpus."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import yaml

from tests.integration.arena import PCIE, SXM, Arena
from tests.integration.referee import Referee

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "twelve-gpus"
LLAMA, MIXTRAL, DBRX = "llama-3.1-70b", "mixtral-8x22b", "dbrx"


def apply_examples(arena: Arena) -> dict[str, str]:
    """Applies the examples to the arena's nodes; returns the names by the file they came from."""
    names = {}
    for path in sorted(EXAMPLES.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            document["metadata"]["namespace"] = arena.namespace
            if document["kind"] == "ModelDeployment":
                document["spec"].setdefault("accelerator", {})["nodeSelector"] = {"arena": arena.namespace}
                names[path.stem] = document["metadata"]["name"]
            arena.apply(document)
    return names


def test_three_models_fill_three_pcie_nodes_exactly_and_a_lost_node_is_planned_again(arena: Arena) -> None:
    nodes = arena.nodes(3, product=PCIE)
    arena.operator()
    names = apply_examples(arena)
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, 4)).watching():
        arena.wait_ready(*names.values())
        held = {file: arena.nodes_of(name) for file, name in names.items()}
        assert {file: sum(gpus.values()) for file, gpus in held.items()} == {LLAMA: 3, MIXTRAL: 5, DBRX: 4}
        assert sum(held.values(), Counter()) == Counter(dict.fromkeys(nodes, 4))
        assert len(held[MIXTRAL]) == 2
        layouts = {file: arena.status(name)["layout"] for file, name in names.items()}
        assert layouts == {LLAMA: "tp1/pp3", MIXTRAL: "tp1/pp5", DBRX: "tp1/pp4"}

        lost = next(node for node in nodes if held[LLAMA][node])
        untouched = {pod["metadata"]["uid"] for pod in arena.pods(names[DBRX])}
        arena.delete_node(lost)
        arena.wait_reason(names[MIXTRAL], "Ready", "WaitingForGPUs")
        arena.wait_ready(names[LLAMA], names[DBRX])
        # 8 GPUs are left, 7 are taken: the fifth of Mixtral's is still free, four are missing.
        arena.wait(
            "Mixtral to be the only one in the queue",
            lambda: (
                arena.status(names[MIXTRAL]).get("waiting", {}).items()
                >= {"gpusShort": 4, "position": 1}.items()
            ),
        )
        assert {pod["metadata"]["uid"] for pod in arena.pods(names[DBRX])} == untouched


def test_with_nvlink_dbrx_becomes_tensor_parallel(arena: Arena) -> None:
    nodes = arena.nodes(3, product=SXM)
    arena.operator()
    names = apply_examples(arena)
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, 4)).watching():
        arena.wait_ready(*names.values())
    layouts = {file: arena.status(name)["layout"] for file, name in names.items()}
    assert layouts == {LLAMA: "tp1/pp3", MIXTRAL: "tp1/pp5", DBRX: "tp4/pp1"}


def test_the_pods_carry_the_whole_command_line(arena: Arena) -> None:
    arena.nodes(3)
    arena.operator()
    names = apply_examples(arena)
    arena.wait_ready(*names.values())
    pods = arena.pods(names[MIXTRAL])
    assert len(pods) == 5
    engines = [pod["spec"]["containers"][0] for pod in pods]
    for engine in engines:
        words = engine["command"] + engine.get("args", [])
        assert words[words.index("--pipeline-parallel-size") + 1] == "5"
        assert words[words.index("--nnodes") + 1] == "5"
        partition = next(env["value"] for env in engine["env"] if env["name"] == "VLLM_PP_LAYER_PARTITION")
        assert sum(json.loads(f"[{partition}]")) == 56
    heads = [engine for engine in engines if "--headless" not in engine["command"] + engine.get("args", [])]
    assert len(heads) == 1
