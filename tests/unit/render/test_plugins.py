from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from bowsprit.api.v1alpha1 import Plugin
from bowsprit.render.plugins import INSTALLER, plugin_env, plugin_init_containers


def plugin(**fields: Any) -> Plugin:
    return Plugin.model_validate(fields)


def env(*plugins: Plugin) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in plugin_env(plugins)}


VLLM_PLUGINS: dict[str, tuple[list[list[str] | None], str | None]] = {
    "nobody names entry points, so vLLM loads all": ([None, None], None),
    "all name some, so exactly those are loaded": ([["a"], ["b", "c"]], "a,b,c"),
    "a name given twice is loaded once": ([["a", "b"], ["b", "c"]], "a,b,c"),
    "naming none is naming nothing": ([[]], None),
}


@pytest.mark.parametrize("case", VLLM_PLUGINS)
def test_entry_points(case: str) -> None:
    named, value = VLLM_PLUGINS[case]
    plugins = [plugin(requirement="a==1", entryPoints=each) for each in named]
    assert env(*plugins).get("VLLM_PLUGINS") == value


def test_a_model_without_plugins_has_nothing_of_them() -> None:
    assert (plugin_env(()), plugin_init_containers((), "engine", {})) == ([], [])


def test_later_plugins_come_later_on_the_path() -> None:
    plugins = [plugin(image="a"), plugin(requirement="b==1")]
    assert env(*plugins)["PYTHONPATH"] == "/opt/bowsprit/plugins/0:/opt/bowsprit/plugins/1"


def test_each_image_copies_and_the_engine_image_installs_all() -> None:
    plugins = [plugin(image="a", path="/w/"), plugin(requirement="b==1"), plugin(image="c")]
    first, third, install = plugin_init_containers(plugins, "engine", {})
    assert (first["image"], first["command"]) == ("a", ["cp", "-R", "/w/.", "/opt/bowsprit/wheels/0"])
    assert (third["image"], third["command"]) == ("c", ["cp", "-R", "/plugins/.", "/opt/bowsprit/wheels/2"])
    assert (install["image"], install["command"]) == ("engine", ["python3", "-c", INSTALLER])
    assert list(json.loads(install["env"][0]["value"])) == [
        f"/opt/bowsprit/plugins/{index}" for index in range(3)
    ]


def wheel(folder: Path, name: str, requires: str = "") -> None:
    """The smallest wheel that pip installs."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", f"NAME = {name!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def install(plugins: dict[str, Any], **env: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "BOWSPRIT_PLUGINS": json.dumps(plugins), "PIP_CONFIG_FILE": os.devnull, **env}
    return subprocess.run(
        [sys.executable, "-c", INSTALLER], env=given, capture_output=True, text=True, check=False
    )


def test_wheels_of_an_image_are_installed_without_their_dependencies_into_a_fresh_folder(
    tmp_path: Path,
) -> None:
    wheel(tmp_path / "wheels", "my_opt", "Requires-Dist: torch==0\n")
    wheel(tmp_path / "wheels", "my_other")
    target = tmp_path / "site" / "0"
    target.mkdir(parents=True)
    (target / "left_over.py").touch()
    source = {"image": "a", "path": "/plugins", "wheels": str(tmp_path / "wheels")}
    done = install({str(target): source})
    assert done.returncode == 0, done.stderr
    assert {file.name for file in target.glob("*.py")} == {"my_opt.py", "my_other.py"}


def test_a_requirement_is_installed_when_its_hash_is_right_and_refused_otherwise(tmp_path: Path) -> None:
    from hashlib import sha256

    wheel(tmp_path / "index", "my_opt")
    (file,) = (tmp_path / "index").iterdir()
    digest = f"sha256:{sha256(file.read_bytes()).hexdigest()}"
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")}
    source = {"requirement": "my-opt==1.0", "hashes": [f"sha256:{'0' * 64}", digest], "index": None}
    target = tmp_path / "site"
    assert install({str(target): source}, **offline).returncode == 0
    assert (target / "my_opt.py").exists()
    refused = install({str(target): {**source, "hashes": [f"sha256:{'0' * 64}"]}}, **offline)
    assert refused.returncode == 1
    assert "bowsprit: pip could not install plugin my-opt==1.0" in refused.stderr


def test_an_image_without_wheels_is_said_by_name(tmp_path: Path) -> None:
    done = install({str(tmp_path / "0"): {"image": "a:1", "path": "/plugins", "wheels": str(tmp_path)}})
    assert done.returncode == 1
    assert done.stderr == "bowsprit: the plugin image a:1 holds no *.whl in /plugins\n"
