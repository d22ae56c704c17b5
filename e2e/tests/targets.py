"""How the tests find their way about: in the cluster on this machine, and in one of the user's own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bowsprit.api.defaults import RUNTIME_IMAGE
from e2e.cluster.build import ensure_programs
from e2e.local.cluster import directory
from e2e.local.materials import Materials
from e2e.tests.target import Manifest, Target

OWN = os.environ.get("BOWSPRIT_E2E_KUBECONFIG")
"""The kubeconfig of a cluster of the user's own; None for the one on this machine."""
ENGINE_VARIABLE = "BOWSPRIT_E2E_ENGINE"
MY_OPT_VARIABLE = "BOWSPRIT_E2E_MY_OPT"
UNEVEN_LLAMA_VARIABLE = "BOWSPRIT_E2E_UNEVEN_LLAMA"
SMALL_PLUGINS_VARIABLE = "BOWSPRIT_E2E_SMALL_PLUGINS"
RUNTIME_VARIABLE = "BOWSPRIT_RUNTIME_IMAGE"
STORAGE_VARIABLE = "BOWSPRIT_E2E_STORAGE_CLASS"
RESOURCE_VARIABLE = "BOWSPRIT_E2E_RESOURCE"
SIZE = "1Gi"


def local_target(materials: Materials) -> Target:
    """Claims are a folder of this machine, so all nodes have the same one."""

    def claim(namespace: str, name: str) -> list[Manifest]:
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{namespace}-{name}"},
            "spec": {
                "capacity": {"storage": SIZE},
                "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "claimRef": {"namespace": namespace, "name": name},
                "hostPath": {"path": str(directory() / namespace), "type": "DirectoryOrCreate"},
            },
        }
        return [volume, _claim(name, {"storageClassName": "", "volumeName": f"{namespace}-{name}"})]

    return Target(
        kubeconfig=directory() / "kubeconfig",
        kubectl_path=ensure_programs().binary("kubectl"),
        engine=materials.engine.reference,
        my_opt=materials.my_opt.reference,
        claim=claim,
        resource="nvidia.com/gpu",
        uneven_llama=materials.uneven_llama.reference,
        runtime=materials.runtime.reference,
    )


def own_target(kubeconfig: Path) -> Target:
    """What cannot be known of a user's cluster is in environment variables; the how-to page names them."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.fail("A cluster of your own needs kubectl on the PATH.")
    storage = os.environ.get(STORAGE_VARIABLE)

    def claim(namespace: str, name: str) -> list[Manifest]:
        return [_claim(name, {"storageClassName": storage} if storage else {})]

    return Target(
        kubeconfig=kubeconfig,
        kubectl_path=kubectl,
        engine=_named(ENGINE_VARIABLE, "an image with a vLLM that runs on your nodes"),
        my_opt=_named(MY_OPT_VARIABLE, "the image built from images/plugin-example/my-opt"),
        claim=claim,
        resource=os.environ.get(RESOURCE_VARIABLE, "nvidia.com/gpu"),
        uneven_llama=os.environ.get(UNEVEN_LLAMA_VARIABLE, ""),
        small_plugins=os.environ.get(SMALL_PLUGINS_VARIABLE, ""),
        runtime=os.environ.get(RUNTIME_VARIABLE, RUNTIME_IMAGE),
    )


def _named(variable: str, what: str) -> str:
    if variable not in os.environ:
        pytest.fail(f"{variable} must name {what}.")
    return os.environ[variable]


def _claim(name: str, spec: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": SIZE}},
            **spec,
        },
    }
