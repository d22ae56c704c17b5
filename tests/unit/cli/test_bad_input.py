"""Bad input: exit code 2, every fault on stderr as `file:document: field: message`, nothing on stdout."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.workspace import Workspace, config_map, listed, model, node

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("documents", "faults"),
    [
        pytest.param(
            ["a: [1"], ["models.yaml, document 1: not YAML: line 2: did not find expected"], id="not YAML"
        ),
        pytest.param([""], ["models.yaml: the file holds no document"], id="an empty file"),
        pytest.param(["# nothing\n---\n"], ["models.yaml: the file holds no document"], id="only comments"),
        pytest.param(
            ["[1, 2]"],
            ["models.yaml, document 1: must be an object with apiVersion and kind, not a list"],
            id="a list",
        ),
        pytest.param(
            ["just words"], ["models.yaml, document 1: must be an object", "not a str"], id="a text"
        ),
        pytest.param(
            [BOMB],
            ["models.yaml, document 1: line 2 has the YAML alias *a; write its value out"],
            id="a YAML bomb",
        ),
        pytest.param(
            ["kind: A\nkind: B\n"],
            ["models.yaml, document 1: a key stands twice in the object at line 1"],
            id="a key twice",
        ),
        pytest.param(["1: 2\n"], ["has the key 1, which is not text; quote it"], id="a key that is a number"),
        pytest.param(
            ["!!python/object:os.system {}"], ["models.yaml, document 1: not YAML"], id="a Python object"
        ),
        pytest.param(["a: \x01"], ["models.yaml, document 1: not YAML"], id="a control character"),
        pytest.param(["[" * 5000], ["models.yaml, document 1: "], id="nested without end"),
        pytest.param(
            [model("a"), {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "x"}}],
            ["models.yaml, document 2: kind: 'Deployment' is not used; ModelDeployment (bowsprit.dev"],
            id="another kind",
        ),
        pytest.param([{"spec": {}}], ["models.yaml, document 1: kind: None is not used"], id="no kind"),
        pytest.param(
            [{**model("a"), "apiVersion": "bowsprit.dev/v2"}],
            ["models.yaml, document 1: apiVersion: 'bowsprit.dev/v2' is not bowsprit.dev/v1alpha1"],
            id="another version",
        ),
        pytest.param(
            [{**config_map(), "apiVersion": "v2"}],
            ["models.yaml, document 1: apiVersion: 'v2' is not v1"],
            id="an odd ConfigMap",
        ),
        pytest.param([config_map()], ["models.yaml: no ModelDeployment in it"], id="no model"),
        pytest.param(
            [model("a"), model("b"), model("a")],
            [
                "models.yaml, document 3: metadata.name: ModelDeployment default/a stands in",
                "models.yaml, document 1 already",
            ],
            id="the same name twice",
        ),
        pytest.param(
            [model("a"), model("a", "default")],
            ["models.yaml, document 2: metadata.name: "],
            id="twice by the default namespace",
        ),
        pytest.param(
            [config_map(), model("a"), config_map()],
            ["models.yaml, document 3: metadata.name: ConfigMap default/config stands in"],
            id="the same ConfigMap twice",
        ),
        pytest.param(
            [model("a"), config_map({"config.json": 5})],
            ["models.yaml, document 2: data[config.json]: must be text, not a int; put the file in as a"],
            id="a number where a file should be",
        ),
        pytest.param(
            [model("a"), {**config_map(), "data": ["x"]}],
            ["models.yaml, document 2: data: must be a map"],
            id="data as a list",
        ),
        pytest.param(
            [model("a"), {**config_map(), "metadata": None}],
            ["models.yaml, document 2: metadata.name: is missing"],
            id="a ConfigMap without a name",
        ),
        pytest.param(
            [{**model("a"), "metadata": None}],
            ["models.yaml, document 1: metadata"],
            id="a model without a name",
        ),
        pytest.param(
            [{**model("a"), "metadata": "a"}], ["models.yaml, document 1: metadata"], id="metadata as a text"
        ),
        pytest.param([{**model("a"), "spec": None}], ["models.yaml, document 1: spec"], id="no spec"),
        pytest.param(
            [model("a", replicas="two")],
            ["models.yaml, document 1: spec.replicas: "],
            id="a text where a number should be",
        ),
        pytest.param(
            [model("a", replica=2)],
            ["models.yaml, document 1: spec.replica: "],
            id="a field that does not exist",
        ),
        pytest.param(
            [model("a", template={"spec": {"volumes": [{"emptyDir": {}}]}})],
            ["models.yaml, document 1: spec.template.spec.volumes: must be a list of objects"],
            id="a template that cannot be merged",
        ),
        pytest.param(
            [model("a", engine={"args": ["--max-num-batched-tokens=64", "--max-num-seqs=65"]})],
            ["models.yaml, document 1: spec.engine.args: --max-num-seqs 65 is more than --max-num"],
            id="more sequences than tokens",
        ),
        pytest.param(
            [listed(model("a", replicas=-1), 7)],
            [
                "models.yaml, document 1: items[0].spec.replicas: ",
                "models.yaml, document 1: items[1]: must be an object",
            ],
            id="faults inside a List",
        ),
        pytest.param(
            [{**listed(), "items": 3}],
            ["models.yaml, document 1: items: must be a list"],
            id="a List that has no list",
        ),
        pytest.param(
            [model("a", replicas=-1), model("b", priority="high"), "- 1"],
            [
                "models.yaml, document 1: spec.replicas: ",
                "models.yaml, document 2: spec.priority: ",
                "models.yaml, document 3: must be an object",
            ],
            id="every fault at once",
        ),
    ],
)
def test_models(workspace: Workspace, documents: list[Any], faults: list[str]) -> None:
    workspace.write("models.yaml", *documents)
    result = workspace.plan("-o", "json")
    assert result.stdout == ""
    for fault in faults:
        assert fault in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("documents", "fault"),
    [
        pytest.param(["{"], "nodes.json, document 1: not JSON: line 1: ", id="not JSON"),
        pytest.param(
            ['{"kind": "List", "kind": "List"}'],
            "nodes.json, document 1: the key 'kind' stands twice",
            id="a key twice",
        ),
        pytest.param([""], "nodes.json: the file holds no document", id="empty"),
        pytest.param([[1]], "nodes.json, document 1: must be an object", id="a list"),
        pytest.param(
            [{"items": []}],
            "nodes.json, document 1: kind: is missing; an inventory is what `kubectl get",
            id="no kind",
        ),
        pytest.param(
            [{"kind": "List", "items": 5}], "nodes.json, document 1: items: must be a list", id="no items"
        ),
        pytest.param(
            [model("a")], "nodes.json, document 1: kind: no Node in it", id="models instead of nodes"
        ),
    ],
)
def test_inventory(workspace: Workspace, documents: list[Any], fault: str) -> None:
    workspace.write("nodes.json", *documents)
    result = workspace.plan("-o", "json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert fault in result.stderr


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        pytest.param([], "layouts.json, document 1: must be an object", id="a list"),
        pytest.param({"llama": []}, "layouts.json, document 1: llama: must be an object", id="no products"),
        pytest.param({"llama": {"A100": {}}}, "llama[A100]: must be a list", id="no rows"),
        pytest.param(
            {"llama": {"A100": [{"tensor": 1}]}},
            "llama[A100][0]: must be {tensor, minPipeline}",
            id="half a row",
        ),
        pytest.param(
            {"llama": {"A100": [{"tensor": 0, "minPipeline": 1}]}},
            "llama[A100][0].tensor: must be a whole number from 1 to 4096, not 0",
            id="tensor of zero",
        ),
        pytest.param(
            {"llama": {"A100": [{"tensor": 1, "minPipeline": True}]}},
            "minPipeline: must be a whole",
            id="true",
        ),
        pytest.param(
            {"llama": {"A100": [{"tensor": 1, "minPipeline": 2.5}]}},
            "minPipeline: must be a whole",
            id="a fraction",
        ),
    ],
)
def test_layouts(workspace: Workspace, table: Any, fault: str) -> None:
    workspace.write("layouts.json", table)
    result = workspace.plan("--layouts", "@layouts.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert fault in result.stderr


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        pytest.param(
            {"products": 1}, "products.yaml: products: must be a list, in one document", id="no list"
        ),
        pytest.param(
            {"products": [{"nodeSelector": {"a": "b"}, "memoryMiB": 3}]},
            "products.yaml, document 1: products[0].memoryMiB must be a whole number",
            id="a GPU of 3 MiB",
        ),
    ],
)
def test_products(workspace: Workspace, table: Any, fault: str) -> None:
    workspace.write("products.yaml", table)
    result = workspace.plan("--products", "@products.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert fault in result.stderr


def test_a_file_that_is_not_there(workspace: Workspace) -> None:
    result = workspace.run("plan", "-f", "@nowhere.yaml", "--inventory", "@nodes.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "nowhere.yaml: cannot be read: No such file or directory" in result.stderr


def test_a_binary_file(workspace: Workspace) -> None:
    (workspace.folder / "models.yaml").write_bytes(b"\x7fELF\xff\x00")
    result = workspace.plan()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "models.yaml: not text: byte 4 is not UTF-8" in result.stderr


def test_an_empty_folder(workspace: Workspace) -> None:
    (workspace.folder / "empty").mkdir()
    result = workspace.run("plan", "-f", "@empty", "--inventory", "@nodes.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "empty: the folder holds no *.yaml, *.yml, *.json file" in result.stderr


def test_a_huge_file(workspace: Workspace) -> None:
    with (workspace.folder / "models.yaml").open("wb") as stream:
        stream.truncate(16 * 2**20 + 1)
    result = workspace.plan()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "models.yaml: larger than 16 MiB, the most that is read here" in result.stderr


def test_faults_of_every_file_are_told_at_once(workspace: Workspace) -> None:
    workspace.write("models.yaml", model("a", replicas=-1))
    workspace.write("nodes.json", "{")
    workspace.write("layouts.json", {"a": 1})
    result = workspace.plan("--layouts", "@layouts.json")
    assert [line.split(": ")[0].rsplit("/", 1)[1] for line in result.stderr.splitlines()] == [
        "models.yaml, document 1",
        "nodes.json, document 1",
        "layouts.json, document 1",
    ]


@pytest.mark.parametrize("name", ["nobody", "default/llama", "mdep/llama"])
def test_a_name_that_no_model_has_is_answered_with_those_there_are(workspace: Workspace, name: str) -> None:
    result = workspace.run("explain", name, "-f", "@models.yaml", "--inventory", "@nodes.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"the given files: no ModelDeployment default/{name}; there are: default/llama" in result.stderr
    assert "give the name alone, its namespace with -n" in result.stderr


def test_one_odd_node_does_not_stop_the_others(workspace: Workspace) -> None:
    workspace.write("nodes.json", listed(node("gpu-1"), {"kind": "Node", "metadata": 5}, {"kind": "Secret"}))
    result = workspace.plan("-o", "json")
    assert result.exit_code == 0
    assert "note: " in result.stderr
