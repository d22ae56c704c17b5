"""The examples of the repository, as the README shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bowsprit.cli.main import app

EXAMPLES = Path(__file__).parents[3] / "examples"
TWELVE = str(EXAMPLES / "twelve-gpus")
PCIE = str(EXAMPLES / "inventories" / "three-a100-nodes.yaml")
SXM = str(EXAMPLES / "inventories" / "three-a100-sxm-nodes.yaml")


def run(*args: str) -> Result:
    return CliRunner().invoke(app, args)


def layouts(inventory: str) -> dict[str, tuple[int, int]]:
    result = run("plan", "-f", TWELVE, "--inventory", inventory, "-o", "json")
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert data["gpus"] == {"total": 12, "used": 12, "free": 0}
    return {
        model["name"]: (replica["tensor"], replica["pipeline"])
        for model in data["models"]
        for replica in model["replicas"]
    }


def test_three_models_take_exactly_twelve_gpus() -> None:
    assert layouts(PCIE) == {"dbrx": (1, 4), "llama-3-1-70b": (1, 3), "mixtral-8x22b": (1, 5)}


def test_with_linked_gpus_dbrx_is_tensor_parallel() -> None:
    assert layouts(SXM)["dbrx"] == (4, 1)


def test_only_mixtral_spans_two_nodes() -> None:
    data = json.loads(run("plan", "-f", TWELVE, "--inventory", PCIE, "-o", "json").stdout)
    nodes = {
        model["name"]: len({pod["node"] for pod in model["replicas"][0]["pods"]}) for model in data["models"]
    }
    assert nodes == {"dbrx": 1, "llama-3-1-70b": 1, "mixtral-8x22b": 2}


def test_the_map_has_a_letter_for_every_gpu() -> None:
    lines = run("map", "-f", TWELVE, "--inventory", PCIE).stdout.splitlines()
    cells = "".join(line.split("NVIDIA")[0].split(maxsplit=1)[1] for line in lines[1:4]).split()
    assert sorted(cells) == ["A"] * 4 + ["B"] * 3 + ["C"] * 5
    assert lines[-1] == "12 of 12 GPUs used, 0 free (.)."


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_every_example_is_read(path: Path) -> None:
    if path.parent.name == "inventories":
        result = run("map", "--inventory", str(path))
    else:
        result = run("plan", "-f", str(path), "--inventory", PCIE)
    assert result.exit_code == 0, result.stderr
