"""containerd on a real node: its configuration, and the images that are put into it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from e2e.cluster.background import NotPossible
from e2e.cluster.real.namespaces import Namespaces, Nested, inside
from e2e.cluster.site import Site
from e2e.images.store import Image

SOCKET = "/run/containerd/containerd.sock"
# restrict_oom_score_adj: without CAP_SYS_RESOURCE, as on a machine that is a container or a small VM itself,
# no container would start ("can't get final child's PID from pipe: EOF").
CONFIGURATION = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni_programs}"
    conf_dir = "{cni_configuration}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{base}"
"""
CNI_PROGRAMS = "/usr/lib/cni"


def containerd(
    site: Site, namespaces: Namespaces, cni_configuration: Path, pause: str, mounts: Mapping[str, Path]
) -> Nested:
    """The container runtime of a node.

    pause: the image that holds a pod's namespaces.
    mounts: path in every container -> a folder of this machine that is mounted there, read-only.
    """
    name = f"containerd-{namespaces.holder.name}"
    path, base = namespaces.folder / "containerd.toml", namespaces.folder / "container.json"
    base.write_text(json.dumps(_every_container(mounts), indent=2))
    path.write_text(
        CONFIGURATION.format(
            pause=pause, cni_programs=CNI_PROGRAMS, cni_configuration=cni_configuration, base=base
        )
    )
    asked = namespaces.command(["ctr", "version"])
    return Nested(
        name,
        namespaces.command(["containerd", "--config", str(path)]),
        site.log(name),
        lambda: subprocess.run(asked, capture_output=True, check=False).returncode == 0,
    )


def import_image(process: int, image: Image) -> None:
    """Puts an image into a node that lacks it, under its tag and under its digest, as a pull would.

    process: the first one of the node's namespaces.
    """
    images = ("ctr", "--namespace", "k8s.io", "images")
    if _run(inside(process, [*images, "list", "--quiet", f"name=={image.reference}"])).strip():
        return
    options = ("--digests", "--base-name", image.repository)
    _run(inside(process, [*images, "import", *options, str(image.archive)]))


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotPossible(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def _every_container(mounts: Mapping[str, Path]) -> dict[str, Any]:
    """What containerd begins every container with: its own default, and the mounts."""
    printed = subprocess.run(["ctr", "oci", "spec"], check=True, capture_output=True, text=True).stdout
    spec: dict[str, Any] = json.loads(printed)
    del spec["process"]["rlimits"]  # a limit of 1,024 files is this tool's default, not the kubelet's
    spec["mounts"] += [
        {"destination": path, "source": str(folder), "type": "bind", "options": ["rbind", "ro"]}
        for path, folder in mounts.items()
    ]
    return spec
