"""Bowsprit's own code in engine pods: where it lies, how it gets there, and the commands that are run of it.

It comes from the runtime image, through a volume, so that any engine image can run it with its own Python.
Names and paths are the contract of docs/decisions/0012-the-runtime-contract.md.
"""

from __future__ import annotations

from typing import Any

from bowsprit.api.names import HTTP_PORT
from bowsprit.render import resources

RUNTIME_CONTAINER = "runtime"
RUNTIME_VOLUME, RUNTIME_MOUNT = "bowsprit-runtime", "/opt/bowsprit/runtime"
_IN_ITS_IMAGE = "/bowsprit"

CONTAINER_SECURITY: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
"""What the restricted pod security standard asks of every container."""


def runtime_volume() -> dict[str, Any]:
    return {"name": RUNTIME_VOLUME, "emptyDir": {}}


def runtime_mount() -> dict[str, Any]:
    """Of every container but the one that fills the volume."""
    return {"name": RUNTIME_VOLUME, "mountPath": RUNTIME_MOUNT, "readOnly": True}


def runtime_init_container(image: str) -> dict[str, Any]:
    """Fills the volume."""
    return {
        "name": RUNTIME_CONTAINER,
        "image": image,
        "command": [f"{_IN_ITS_IMAGE}/bin/busybox", "cp", "-R", f"{_IN_ITS_IMAGE}/.", RUNTIME_MOUNT],
        "resources": resources.COPYING,
        "volumeMounts": [{"name": RUNTIME_VOLUME, "mountPath": RUNTIME_MOUNT}],
        "securityContext": CONTAINER_SECURITY,
    }


def command(*words: str) -> list[str]:
    """A command of the runtime, run by the engine image's Python."""
    return ["python3", RUNTIME_MOUNT, *words]


def busybox(*words: str) -> list[str]:
    """A command in an image that may have no program of its own."""
    return [f"{RUNTIME_MOUNT}/bin/busybox", *words]


def ready_command(scheme: str, served_name: str) -> list[str]:
    """Whether this pod's server lists `served_name`; the key that it may ask for is in the environment."""
    return command("ready", server_url(scheme), served_name)


def server_url(scheme: str) -> str:
    """Of the pod's own server."""
    return f"{scheme.lower()}://127.0.0.1:{HTTP_PORT}"
