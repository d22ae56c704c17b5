"""The cluster that a command asks cannot be reached, is not said, or is said twice: exit code 2, one line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.unit.cli.workspace import Workspace, node


def in_a_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """An event loop is run, and pytest has its own."""
    command = [sys.executable, "-m", "bowsprit.cli.main", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


LIVE = [["plan", "-f", "models.yaml"], ["preflight", "-f", "models.yaml"], ["run"]]
"""Every way to the live cluster; map and explain go as plan does."""

DOWN = """
current-context: down
contexts: [{name: down, context: {cluster: down, user: me}}]
clusters: [{name: down, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: x}}]
"""


def words_about(workspace: Workspace, command: list[str], content: str | None) -> str:
    """The one line that the command says of that kubeconfig."""
    kubeconfig = workspace.folder / "kubeconfig"
    if content is not None:
        kubeconfig.write_text(content)
    arguments = [str(workspace.folder / each) if each.endswith(".yaml") else each for each in command]
    result = in_a_process(*arguments, "--kubeconfig", str(kubeconfig))
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize("command", LIVE, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("content", "fault"),
    [
        pytest.param(
            None, "there is no file {}; choose a cluster with --kubeconfig and --context", id="none"
        ),
        pytest.param("words", "{}: not a kubeconfig; choose a cluster with --kubeconfig and", id="a text"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used(
    workspace: Workspace, command: list[str], content: str | None, fault: str
) -> None:
    line = words_about(workspace, command, content)
    assert line.startswith("live cluster: " + fault.format(workspace.folder / "kubeconfig"))
    assert line.endswith("; or give --inventory FILE") == (command[0] == "plan")


@pytest.mark.parametrize("command", LIVE[:2], ids=lambda command: command[0])
def test_a_cluster_that_is_down(workspace: Workspace, command: list[str]) -> None:
    assert words_about(workspace, command, DOWN).startswith(
        "live cluster: https://127.0.0.1:1 cannot be reached: Connection refused; see that the cluster runs "
        "and that this is its address; --kubeconfig and --context choose another"
    )


def test_no_kubeconfig_and_no_inventory(workspace: Workspace) -> None:
    result = in_a_process("map", KUBECONFIG=str(workspace.folder / "none"))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f"live cluster: there is no file {workspace.folder}/none, and this is no pod of a cluster; choose a "
        "cluster with --kubeconfig and --context; or give --inventory FILE\n"
    )


@pytest.mark.parametrize(
    ("options", "ignored"),
    [
        (["--kubeconfig", "k"], "--kubeconfig"),
        (["--context=c"], "--context"),
        (["--context=c", "--kubeconfig=k"], "--kubeconfig and --context"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("command", ["plan", "render", "map", "explain"])
def test_an_inventory_and_a_live_cluster(
    workspace: Workspace, command: str, options: list[str], ignored: str
) -> None:
    name = ["chat"] if command == "explain" else []
    files = ["-f", "models.yaml", "--inventory", "nodes.yaml"]
    result = workspace.run(command, *name, *files, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"--inventory: is the cluster then, and {ignored} would be ignored: give the one or the other\n"
    )


def test_an_inventory_beside_a_cluster_that_the_environment_names(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOWSPRIT_KUBECONFIG", str(workspace.folder / "none"))
    inventory = workspace.write("nodes.yaml", node("n1"))
    assert workspace.run("map", "--inventory", inventory).exit_code == 0


def test_explain_has_no_use_for_an_inventory_alone(workspace: Workspace) -> None:
    result = workspace.run("explain", "chat", "--inventory", workspace.write("nodes.yaml", node("n1")))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "--inventory: give the models that are planned on it with -f\n"
