"""The operator's Containerfile keeps its promises; whoever builds it sees the rest."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from bowsprit.controller.settings import Settings
from docs.pages import ROOT

FILE = ROOT / "images/operator/Containerfile"


def _instructions(path: Path = FILE) -> list[tuple[str, str]]:
    """Each instruction with its arguments, continued lines joined."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


def _arguments(name: str) -> list[str]:
    return [arguments for instruction, arguments in _instructions() if instruction == name]


def test_it_runs_as_a_numbered_user_who_is_not_root() -> None:
    last_stage = [name for name, _ in _instructions()]
    assert "USER" in last_stage[len(last_stage) - last_stage[::-1].index("FROM") :]
    user, _, group = _arguments("USER")[-1].partition(":")
    assert int(user) > 0
    assert int(group) > 0


def test_the_user_who_is_in_no_passwd_file_has_a_home() -> None:
    """Without one the Kubernetes client cannot even be imported."""
    assert re.search(r"\bHOME=/", _arguments("ENV")[-1])


def test_what_comes_from_an_index_is_pinned_by_hash_and_never_built() -> None:
    calls = [call for run in _arguments("RUN") for call in run.split("&&") if " pip " in f"{call} "]
    assert calls
    for call in calls:
        assert "--require-hashes" in call or "--no-index" in call, call


def test_nothing_needs_a_shell_at_run_time() -> None:
    for instruction in ("ENTRYPOINT", "CMD"):
        (arguments,) = _arguments(instruction)
        assert all(isinstance(word, str) for word in json.loads(arguments))
    names = [name for name, _ in _instructions()]
    assert "RUN" not in names[len(names) - names[::-1].index("FROM") :], "the last image may have no shell"


def test_the_bases_are_arguments() -> None:
    stages = [arguments.split(" AS ") for arguments in _arguments("FROM")]
    names = {name for _, *named in stages for name in named}
    bases = [base for base, *_ in stages if base not in names]
    assert bases == ["${BASE}", "${RUN_BASE}"]


@pytest.mark.parametrize(
    "source", [s for c in _arguments("COPY") if "--from" not in c for s in c.split()[:-1]]
)
def test_what_is_copied_exists_and_is_not_ignored(source: str) -> None:
    assert (ROOT / source).exists()
    taken = [line[1:] for line in _ignored() if line.startswith("!")]
    assert any(source == name or source.startswith(f"{name}/") for name in taken)


def test_what_the_build_leaves_behind_is_ignored() -> None:
    patterns = [line.removeprefix("**/") for line in _ignored() if line.startswith("**/")]
    for name in ("__pycache__", "bowsprit.egg-info"):
        assert any(fnmatch(name, pattern) for pattern in patterns)


def test_image_chart_and_operator_agree_on_the_port() -> None:
    port = Settings().listen_port
    assert _arguments("EXPOSE") == [str(port)]
    template = (ROOT / "charts/bowsprit/templates/deployment.yaml").read_text()
    assert re.findall(r"containerPort: (\d+)", template) == [str(port)]
    service = (ROOT / "charts/bowsprit/templates/service.yaml").read_text()
    assert re.findall(r" port: (\d+)", service) == [str(port)]


def test_the_chart_asks_for_the_image_that_the_file_says_how_to_build() -> None:
    values = yaml.safe_load((ROOT / "charts/bowsprit/values.yaml").read_text())
    about = yaml.safe_load((ROOT / "charts/bowsprit/Chart.yaml").read_text())
    assert f"-t {values['image']['repository']}:{about['appVersion']} ." in FILE.read_text()


def _ignored() -> list[str]:
    lines = FILE.with_name("Containerfile.dockerignore").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]
