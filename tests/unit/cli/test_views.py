"""Tables, the map, explain and render, as a pipe sees them: plain text without trailing blanks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import bowsprit
from bowsprit.cli.screen import plain
from tests.unit.cli.workspace import Workspace, config_map, listed, model, node, pod

ENGINE = {"bowsprit.dev/model": "llama"}
UNCONFIGURED = {"uri": "hf://org/model"}


def masked(shown: str) -> str:
    """Without what the memory model and the words of other rooms decide."""
    shown = re.sub(r"(gpu-10 +4 +)\w.*", r"\1…", shown)
    return re.sub(r"(is not set: ).*", r"\1…", re.sub(r"\d\d\.\d of", "##.# of", shown))


def text(block: str) -> str:
    """A block in a test, as the lines that it shows."""
    return "\n".join(line.removeprefix("    ") for line in block.strip("\n").splitlines()).rstrip() + "\n"


def test_the_table_of_a_plan(workspace: Workspace) -> None:
    workspace.write(
        "models.yaml", model("llama", replicas=2), model("later", "later", model=UNCONFIGURED), config_map()
    )
    result = workspace.plan()
    assert result.exit_code == 3
    assert masked(result.stdout) == text(
        """
    MODEL           REPLICA   LAYOUT    GPUS   GPU TYPE                GIB/GPU        NODES
    default/llama   0         tp1/pp2   2      NVIDIA-A100-80GB-PCIe   ##.# of 73.6   gpu-1 (2 GPUs)
    default/llama   1         tp1/pp2   2      NVIDIA-A100-80GB-PCIe   ##.# of 73.6   gpu-1 (2 GPUs)

    later/later: ModelConfigMissing: spec.model.config is not set: …

    4 of 8 GPUs used, 4 free.
        """
    )


def test_the_map_of_a_plan_shows_models_other_pods_and_free_gpus(workspace: Workspace) -> None:
    workspace.write("models.yaml", model("llama"), model("zephyr", replicas=2), config_map())
    broken = node("gpu-10")
    broken["spec"] = {"unschedulable": True}
    workspace.write("nodes.json", listed(node("gpu-1"), node("gpu-2"), broken, pod("notebook", "gpu-2", 1)))
    result = workspace.run("map", "-f", "@models.yaml", "--inventory", "@nodes.json")
    assert result.exit_code == 0
    assert masked(result.stdout) == text(
        """
    NODE     GPUS      GPU TYPE
    gpu-1    B B B B   NVIDIA-A100-80GB-PCIe
    gpu-2    A A # .   NVIDIA-A100-80GB-PCIe
    gpu-10   x x x x   NVIDIA-A100-80GB-PCIe

        MODEL            GPUS   LAYOUT        GIB/GPU
    A   default/llama    2      tp1/pp2       ##.# of 73.6
    B   default/zephyr   4      2 x tp1/pp2   ##.# of 73.6

    7 of 12 GPUs used, 1 free (.), 1 by other pods (#), 4 not usable (x).

    NOT USED ON   GPUS   BECAUSE
    gpu-10        4      …
        """
    )


def test_the_map_of_an_inventory_shows_who_holds_what(workspace: Workspace) -> None:
    workspace.write("nodes.json", listed(node("gpu-1"), pod("a", "gpu-1", 2, **ENGINE), pod("b", "gpu-1", 1)))
    result = workspace.run("map", "--inventory", "@nodes.json")
    assert result.stdout == text(
        """
    NODE    GPUS      GPU TYPE
    gpu-1   A A # .   NVIDIA-A100-80GB-PCIe

        MODEL           GPUS   LAYOUT   GIB/GPU
    A   default/llama   2      -        -

    3 of 4 GPUs used, 1 free (.), 1 by other pods (#).
        """
    )


def test_a_plan_that_fails_names_the_nodes_that_are_not_used(workspace: Workspace) -> None:
    cordoned = [{**node(f"gpu-{number:02}"), "spec": {"unschedulable": True}} for number in range(12)]
    workspace.write("nodes.json", listed(*cordoned))
    shown = workspace.plan().stdout
    assert re.search(r"NOT USED ON +GPUS +BECAUSE\ngpu-00 +4 +\w+", shown)
    assert "gpu-09" in shown
    assert "gpu-10" not in shown
    assert shown.endswith("\nand on 2 more\n")


def test_the_map_of_no_gpus_says_so(workspace: Workspace) -> None:
    workspace.write("nodes.json", listed())
    assert workspace.run("map", "--inventory", "@nodes.json").stdout == "No node with GPUs.\n"


def test_many_models_get_signs_of_two_letters(workspace: Workspace) -> None:
    workspace.write(
        "models.yaml", *(model(f"m{number:02}", replicas=0) for number in range(27)), config_map()
    )
    lines = workspace.run("map", "-f", "@models.yaml", "--inventory", "@nodes.json").stdout.splitlines()
    assert lines[1].startswith("gpu-1   .  .  .  .")
    assert lines[5].startswith("AA   default/m00")
    assert lines[31].startswith("BA   default/m26")


def test_explain_tells_a_placed_model_with_its_stages(workspace: Workspace) -> None:
    result = workspace.run("explain", "llama", "-f", "@models.yaml", "--inventory", "@nodes.json")
    assert result.exit_code == 0
    assert result.stdout.startswith("default/llama: Starting\nArchitecture: LlamaForCausalLM\n")
    assert (
        "Replica 0: tp1/pp2 on 2 GPUs of NVIDIA-A100-80GB-PCIe, 1 pod\n  Nodes: gpu-1 (2 GPUs)\n  Why: "
        in (result.stdout)
    )
    assert re.search(
        r"  STAGE +LAYERS +WEIGHTS GIB +KV GIB +OTHER GIB +SUM +OF\n  0-1 +40 +65\.7 ", result.stdout
    )


def test_explain_tells_a_waiting_model_who_holds_the_gpus_and_what_would_help(workspace: Workspace) -> None:
    workspace.write("models.yaml", model("llama"), model("zephyr", priority=5, replicas=3), config_map())
    cordoned = {**node("gpu-3"), "spec": {"unschedulable": True}}
    workspace.write(
        "nodes.json", listed(node("gpu-1"), node("gpu-2", 3), cordoned, pod("notebook", "gpu-2", 1))
    )
    result = workspace.run("explain", "llama", "-f", "@models.yaml", "--inventory", "@nodes.json")
    assert "Waits for 2 GPUs of NVIDIA-A100-80GB-PCIe, place 1 in the queue." in result.stdout
    assert re.search(r"Who holds them:\n  HOLDER .*\n  default/zephyr +2 .*\n", result.stdout)
    assert re.search(r"  default/notebook +1 ", result.stdout)
    assert "  - 4 GPUs on gpu-3 not used: " in result.stdout


def test_render_prints_what_the_operator_would_apply(workspace: Workspace) -> None:
    workspace.write(
        "models.yaml",
        model("llama", preflight="Skip"),
        model("wide", parallelism={"pipeline": 5, "tensor": 1}),
        config_map(),
    )
    result = workspace.run("render", "-f", "@models.yaml", "--inventory", "@nodes.json")
    assert result.exit_code == 0
    manifests = list(yaml.safe_load_all(result.stdout))
    assert [each["kind"] for each in manifests] == [
        "ControllerRevision",
        "Service",
        "Deployment",
        "Job",
        "ControllerRevision",
        "Service",
        "LeaderWorkerSet",
    ]


def test_render_names_what_is_not_placed(workspace: Workspace) -> None:
    workspace.write("models.yaml", model("llama", replicas=9), config_map())
    result = workspace.run("render", "-f", "@models.yaml", "--inventory", "@nodes.json")
    assert result.exit_code == 3
    assert "note: default/llama is not placed: InsufficientGPUs: " in result.stderr
    assert [
        each["spec"]["replicas"] for each in yaml.safe_load_all(result.stdout) if each["kind"] == "Deployment"
    ] == [4]


def test_text_in_brackets_is_shown_as_it_is(workspace: Workspace) -> None:
    assert plain("spec.engine.args[red] [/] :smile:") == "spec.engine.args[red] [/] :smile:\n"


def test_no_colour_leaves_the_pipe(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in workspace.run("map", "-f", "@models.yaml", "--inventory", "@nodes.json").stdout


def test_the_map_of_a_plan_says_why_a_model_has_no_replicas(workspace: Workspace) -> None:
    workspace.write(
        "models.yaml",
        model("none", replicas=0),
        model("paused", suspend=True, replicas=2),
        model("wide", parallelism={"pipeline": 20, "tensor": 1}),
        config_map(),
    )
    shown = workspace.run("map", "-f", "@models.yaml", "--inventory", "@nodes.json").stdout
    assert re.search("default/none +0 +0 replicas +-", shown)
    assert re.search("default/paused +0 +suspended +-", shown)
    assert re.search("default/wide +0 +not placed +-", shown)


COMMANDS = ["plan", "render", "preflight", "map", "explain", "crd", "run", "version"]


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version(workspace: Workspace, arguments: list[str]) -> None:
    result = workspace.run(*arguments)
    assert (result.exit_code, result.stdout) == (0, f"{bowsprit.__version__}\n")


@pytest.mark.parametrize("arguments", [[], *([command] for command in COMMANDS)])
def test_a_flag_is_not_shown_as_if_it_took_a_value(workspace: Workspace, arguments: list[str]) -> None:
    shown = workspace.run(*arguments, "--help").stdout
    assert "--help" in shown
    assert "<bool>" not in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(workspace: Workspace, command: str) -> None:
    result = workspace.run(command, "--help")
    assert result.exit_code == 0
    assert command == "version" or "Example: " in result.stdout


def test_the_crd_is_printed_as_it_is_shipped(workspace: Workspace) -> None:
    (document,) = yaml.safe_load_all(workspace.run("crd").stdout)
    assert document["metadata"]["name"] == "modeldeployments.bowsprit.dev"


def test_nothing_of_the_cluster_is_imported_to_plan_on_files() -> None:
    """So that `bowsprit plan` answers at once."""
    code = (
        "import sys, bowsprit.cli.main, bowsprit.cli.planning, bowsprit.cli.tables, bowsprit.cli.gpumap;"
        "print([name for name in ('kubernetes', 'kopf', 'aiohttp') if name in sys.modules])"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
