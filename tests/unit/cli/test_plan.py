"""`bowsprit plan`: the contract with scripts, and what goes into the plan."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.unit.cli.workspace import A100, Workspace, config_map, listed, model, node, pod

MODEL_KEYS = ["namespace", "name", "placed", "reason", "message", "replicas"]
REPLICA_KEYS = ["index", "tensor", "pipeline", "layerPartition", "gpusPerPod", "pods", "stages", "why"]
STAGE_KEYS = ["layers", "weightsGiB", "kvGiB", "otherGiB", "capacityGiB"]


def test_the_json_has_exactly_the_keys_of_the_contract(workspace: Workspace) -> None:
    data = workspace.data()
    assert list(data) == ["models", "gpus"]
    assert data["gpus"] == {"total": 8, "used": 2, "free": 6}
    (found,) = data["models"]
    assert list(found) == MODEL_KEYS
    assert (found["namespace"], found["name"], found["placed"], found["reason"]) == (
        "default",
        "llama",
        True,
        "Planned",
    )
    (replica,) = found["replicas"]
    assert list(replica) == REPLICA_KEYS
    assert (replica["index"], replica["tensor"], replica["pipeline"]) == (0, 1, 2)
    assert sum(replica["layerPartition"]) == 80
    assert sum(each["gpus"] for each in replica["pods"]) == 2
    assert replica["why"]
    assert len(replica["stages"]) == 2
    for stage in replica["stages"]:
        assert list(stage) == STAGE_KEYS
        used = stage["weightsGiB"] + stage["kvGiB"] + stage["otherGiB"]
        assert used <= stage["capacityGiB"] == 73.6
        assert all(round(stage[name], 2) == stage[name] for name in STAGE_KEYS)


def test_yaml_is_the_same_data(workspace: Workspace) -> None:
    result = workspace.plan("-o", "yaml")
    assert yaml.safe_load(result.stdout) == workspace.data()


def test_models_come_in_the_order_of_namespace_and_name(workspace: Workspace) -> None:
    keys = [("b", "a"), ("a", "z"), ("default", "m"), ("a", "b")]
    workspace.write("models.yaml", *(model(name, namespace, replicas=0) for namespace, name in keys))
    assert [(each["namespace"], each["name"]) for each in workspace.data()["models"]] == sorted(keys)


@pytest.mark.parametrize(
    ("replicas", "code", "placed"), [(1, 0, True), (4, 0, True), (5, 3, False), (0, 0, True)]
)
def test_the_exit_code_says_whether_all_are_placed(
    workspace: Workspace, replicas: int, code: int, placed: bool
) -> None:
    workspace.write("models.yaml", model("llama", replicas=replicas), config_map())
    result = workspace.plan("-o", "json")
    assert result.exit_code == code
    found = json.loads(result.stdout)["models"][0]
    assert found["placed"] is placed
    assert len(found["replicas"]) == min(replicas, 4)


def test_a_model_whose_config_is_missing_is_not_placed_and_the_others_are(workspace: Workspace) -> None:
    workspace.write("models.yaml", model("llama"), model("lost", "elsewhere"), config_map())
    result = workspace.plan("-o", "json")
    assert result.exit_code == 3
    llama, lost = json.loads(result.stdout)["models"]
    assert llama["placed"]
    assert (lost["placed"], lost["reason"], lost["replicas"]) == (False, "ModelConfigMissing", [])
    assert "ConfigMap config is not in namespace elsewhere" in lost["message"]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        pytest.param({}, "ModelConfigMissing", id="no config.json"),
        pytest.param({"config.json": "{"}, "ModelConfigInvalid", id="not JSON"),
        pytest.param({"config.json": "[]"}, "ModelConfigInvalid", id="a list"),
        pytest.param({"config.json": '{"num_hidden_layers": NaN}'}, "ModelConfigInvalid", id="not a number"),
        pytest.param({"config.json": "{}"}, None, id="nothing in it"),
    ],
)
def test_a_bad_config_is_a_reason_and_no_crash(workspace: Workspace, config: Any, reason: str | None) -> None:
    workspace.write("models.yaml", model("llama"), config_map(config))
    result = workspace.plan("-o", "json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)["models"][0]
    assert not found["placed"]
    assert found["reason"].startswith("ModelConfig")
    assert reason in (None, found["reason"])


def test_a_model_without_any_config_says_what_to_do(workspace: Workspace) -> None:
    workspace.write("models.yaml", model("llama", model={"uri": "hf://org/model"}))
    found = workspace.data()["models"][0]
    assert found["reason"] == "ModelConfigMissing"
    assert "spec.model.config is not set" in found["message"]


def test_a_suspended_model_takes_nothing(workspace: Workspace) -> None:
    workspace.write("models.yaml", model("llama", suspend=True), config_map())
    result = workspace.plan("-o", "json")
    data = json.loads(result.stdout)
    assert (data["models"][0]["reason"], data["gpus"]["used"], result.exit_code) == ("Suspended", 0, 0)


def test_every_pod_of_the_inventory_keeps_its_gpus(workspace: Workspace) -> None:
    held = [pod("notebook", "gpu-1", 3), pod("engine", "gpu-2", 4, **{"bowsprit.dev/model": "other"})]
    workspace.write("nodes.json", listed(node("gpu-1"), node("gpu-2"), *held))
    result = workspace.plan("-o", "json")
    data = json.loads(result.stdout)
    assert result.exit_code == 3
    assert data["gpus"] == {"total": 8, "used": 7, "free": 1}
    assert data["models"][0]["reason"] == "InsufficientGPUs"


def test_a_model_that_runs_already_is_told_of_its_pods(workspace: Workspace) -> None:
    own = {"bowsprit.dev/model": "llama"}
    pods = [pod("llama-0", "gpu-1", 4, **own), pod("llama-1", "gpu-2", 3, **own), pod("notebook", "gpu-2", 1)]
    workspace.write("nodes.json", listed(node("gpu-1"), node("gpu-2"), *pods))
    result = workspace.plan()
    assert result.exit_code == 3
    told = "default/llama runs already: its pods keep 7 GPUs, and what is planned here stands beside them"
    assert f"note: {told}" in " ".join(result.stderr.split())


def test_gpus_held_on_a_cordoned_node_are_used_and_its_free_ones_do_not_count(workspace: Workspace) -> None:
    cordoned = {**node("gpu-3"), "spec": {"unschedulable": True}}
    workspace.write("nodes.json", listed(node("gpu-1"), cordoned, pod("notebook", "gpu-3", 3)))
    assert workspace.data()["gpus"] == {"total": 7, "used": 5, "free": 2}


def test_an_empty_cluster_is_an_answer(workspace: Workspace) -> None:
    workspace.write("nodes.json", listed())
    result = workspace.plan("-o", "json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["gpus"] == {"total": 0, "used": 0, "free": 0}


def test_files_folders_and_lists_are_read_alike(workspace: Workspace) -> None:
    together = workspace.data()
    workspace.write("apart/deep/a.yml", listed(model("llama")))
    workspace.write("apart/b.json", config_map())
    workspace.write("apart/notes.txt", "not read")
    result = workspace.run("plan", "-f", "@apart", "--inventory", "@nodes.json", "-o", "json")
    assert json.loads(result.stdout) == together


def test_stdin_is_read_for_a_dash(workspace: Workspace) -> None:
    inventory = json.dumps(listed(node("gpu-1"), node("gpu-2")))
    result = workspace.run("plan", "-f", "@models.yaml", "--inventory", "-", "-o", "json", stdin=inventory)
    assert json.loads(result.stdout) == workspace.data()


def test_a_date_without_quotes_stays_text(workspace: Workspace) -> None:
    text = json.dumps(model("llama")).replace(
        '"name": "llama"', '"name": "llama", "creationTimestamp": 2026-11-30'
    )
    workspace.write("models.yaml", text, config_map())
    assert workspace.plan().exit_code == 0


def test_a_measured_table_replaces_the_memory_model_and_the_config(workspace: Workspace) -> None:
    workspace.write("models.yaml", model("llama", model={"uri": "hf://org/model"}))
    workspace.write("layouts.json", {"llama": {A100: [{"tensor": 1, "minPipeline": 3}]}})
    data = workspace.data("--layouts", "@layouts.json")
    (replica,) = data["models"][0]["replicas"]
    assert (replica["tensor"], replica["pipeline"], replica["stages"]) == (1, 3, [])
    assert data["models"][0]["placed"]


def test_a_measured_table_is_found_by_namespace_and_name_too(workspace: Workspace) -> None:
    workspace.write("layouts.json", {"default/llama": {A100: [{"tensor": 1, "minPipeline": 5}]}})
    assert workspace.data("--layouts", "@layouts.json")["models"][0]["replicas"][0]["pipeline"] == 5


def test_explicit_parallelism_wins_over_a_measured_table(workspace: Workspace) -> None:
    workspace.write("models.yaml", model("llama", parallelism={"pipeline": 4, "tensor": 1}), config_map())
    workspace.write("layouts.json", {"llama": {A100: [{"tensor": 1, "minPipeline": 3}]}})
    assert workspace.data("--layouts", "@layouts.json")["models"][0]["replicas"][0]["pipeline"] == 4


def test_a_table_for_no_model_is_noted(workspace: Workspace) -> None:
    workspace.write("layouts.json", {"lama": {A100: [{"tensor": 1, "minPipeline": 3}]}})
    result = workspace.plan("--layouts", "@layouts.json")
    assert result.exit_code == 0
    assert "layouts.json: lama is the name of no model in the files" in result.stderr


def test_declared_products_make_unlabelled_nodes_count(workspace: Workspace) -> None:
    bare = node("gpu-1")
    bare["metadata"]["labels"] = {"kubernetes.io/hostname": "gpu-1"}
    workspace.write("nodes.json", listed(bare))
    assert workspace.data()["gpus"]["total"] == 0
    workspace.write(
        "products.yaml",
        {
            "products": [
                {"nodeSelector": {"kubernetes.io/hostname": "gpu-1"}, "product": A100, "memoryMiB": 81920}
            ]
        },
    )
    assert workspace.data("--products", "@products.yaml")["gpus"]["total"] == 4


def test_the_answer_does_not_depend_on_the_order_of_the_input(workspace: Workspace) -> None:
    documents = [model(name, replicas=1) for name in ("a", "b", "c")]
    workspace.write("models.yaml", *documents, config_map())
    first = workspace.data()
    workspace.write("models.yaml", config_map(), *reversed(documents))
    workspace.write("nodes.json", listed(node("gpu-2"), node("gpu-1")))
    assert workspace.data() == first
