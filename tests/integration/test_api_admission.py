"""The CRD on a real API server: it is accepted as it is, and refuses what Python's validate() refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bowsprit.api.crd import FILE, crd
from bowsprit.api.v1alpha1 import API_VERSION, GROUP, PLURAL
from bowsprit.api.validate import validate
from e2e.cluster.api import Api, ApiError
from e2e.cluster.control_plane import ControlPlane
from tests.unit.api.accepted_cases import ACCEPTED
from tests.unit.api.malformed_cases import MALFORMED, UNKNOWN
from tests.unit.api.manifests import Manifest, Refused, manifest
from tests.unit.api.refused_cases import REFUSED

pytestmark = pytest.mark.integration

CRD_FILE = Path(__file__).resolve().parents[2] / FILE
CRD_NAME = f"crd/{PLURAL}.{GROUP}"


@pytest.fixture(scope="module")
def definition(control_plane: ControlPlane) -> None:
    """The CRD, installed as a user does it: `kubectl apply`, client-side."""
    control_plane.kubectl("apply", "-f", str(CRD_FILE))
    control_plane.kubectl("wait", CRD_NAME, "--for=condition=Established", "--timeout=60s")


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane, definition: None) -> Api:
    return control_plane.api()


def refusal(api: Api, body: Manifest, namespace: str = "default") -> str | None:
    """What the API server says against an object; None when it would take it. Nothing is stored."""
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}?dryRun=All&fieldValidation=Strict"
    try:
        api.create_all(path, [body])
    except ApiError as error:
        return str(error)
    return None


@pytest.mark.parametrize("sound", ACCEPTED.values(), ids=ACCEPTED)
def test_the_server_takes(sound: Manifest, api: Api) -> None:
    assert refusal(api, sound) is None


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_the_server_refuses_in_the_words_of_the_cli(case: Refused, api: Api) -> None:
    said = refusal(api, case.manifest)
    assert said is not None
    for field, message in validate(case.manifest):
        assert f"is invalid: {field}: Invalid value" in said
        assert said.endswith(message), "it says that and nothing else"


@pytest.mark.parametrize("case", [*MALFORMED.values(), *UNKNOWN.values()], ids=[*MALFORMED, *UNKNOWN])
def test_the_server_refuses_of_the_same_field(case: Refused, api: Api) -> None:
    assert case.field in (refusal(api, case.manifest) or "")


@pytest.mark.usefixtures("definition")
def test_applying_the_definition_again_changes_nothing(control_plane: ControlPlane) -> None:
    assert "unchanged" in control_plane.kubectl("apply", "-f", str(CRD_FILE))


def test_the_server_keeps_the_schema_as_it_was_sent(control_plane: ControlPlane, definition: None) -> None:
    """What the server drops or adds without a word would show as drift in GitOps tools."""
    stored = json.loads(control_plane.kubectl("get", CRD_NAME, "-o", "json"))
    assert stored["spec"]["versions"] == crd()["spec"]["versions"]


def test_the_server_finds_the_schema_structural(control_plane: ControlPlane, definition: None) -> None:
    stored = json.loads(control_plane.kubectl("get", CRD_NAME, "-o", "json"))
    conditions = {each["type"]: each["status"] for each in stored["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert "NonStructuralSchema" not in conditions


def test_applying_a_model_twice_changes_nothing(
    control_plane: ControlPlane, definition: None, namespace: str
) -> None:
    text = json.dumps(ACCEPTED["a template"])
    assert "created" in control_plane.kubectl("apply", "-n", namespace, "-f", "-", input=text)
    assert "unchanged" in control_plane.kubectl("apply", "-n", namespace, "-f", "-", input=text)
    stored = json.loads(control_plane.kubectl("get", "mdep", "llama", "-n", namespace, "-o", "json"))
    assert stored["spec"] == ACCEPTED["a template"]["spec"], "no defaults, nothing pruned"


def test_kubectl_explain_tells_units_and_meaning(control_plane: ControlPlane, definition: None) -> None:
    said = " ".join(control_plane.kubectl("explain", "mdep.spec.capacity").split())
    assert "KV cache must fit at the same time" in said
    assert "GPUs of each pod" in control_plane.kubectl("explain", "mdep.spec.parallelism.gpusPerPod")


def test_the_status_is_kept_whole_and_its_columns_print(
    control_plane: ControlPlane, definition: None, namespace: str
) -> None:
    control_plane.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(manifest()))
    patch_status(control_plane, namespace, STATUS)
    stored = json.loads(control_plane.kubectl("get", "mdep", "llama", "-n", namespace, "-o", "json"))
    assert stored["status"] == STATUS
    narrow = control_plane.kubectl("get", "mdep", "-n", namespace).splitlines()
    assert narrow[0].split() == ["NAME", "MODEL", "PHASE", "READY", "GPUS", "LAYOUT", "REPLICAS", "AGE"]
    assert narrow[1].split()[:7] == [
        "llama",
        "hf://meta-llama/Llama-3.1-70B",
        "Ready",
        "True",
        "3",
        "tp1/pp3",
        "1/1",
    ]
    wide = control_plane.kubectl("get", "bowsprit", "-n", namespace, "-o", "wide").splitlines()
    assert wide[0].split()[-4:] == ["ARCH", "PLUGINS", "REASON", "URL"]
    assert wide[1].split()[-4:] == ["LlamaForCausalLM", "my-opt==1.2.3", "ReplicasReady", STATUS["url"]]


def test_kubectl_scale_sets_replicas_and_reads_the_selector(
    control_plane: ControlPlane, definition: None, namespace: str
) -> None:
    control_plane.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(manifest()))
    patch_status(control_plane, namespace, STATUS)
    control_plane.kubectl("scale", "mdep", "llama", "-n", namespace, "--replicas=2")
    scale = control_plane.api().get(f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}/llama/scale")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 1, "selector": STATUS["selector"]}


def test_kubectl_wait_sees_the_summary_condition(
    control_plane: ControlPlane, definition: None, namespace: str
) -> None:
    control_plane.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(manifest()))
    patch_status(control_plane, namespace, STATUS)
    assert "condition met" in control_plane.kubectl(
        "wait", "mdep/llama", "-n", namespace, "--for=condition=Ready", "--timeout=30s"
    )


STATUS: dict[str, Any] = {
    "observedGeneration": 1,
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "ReplicasReady",
            "message": "1 of 1 replica answers.",
            "lastTransitionTime": "2026-11-30T15:00:00Z",
            "observedGeneration": 1,
        }
    ],
    "phase": "Ready",
    "replicas": 1,
    "readyReplicas": 1,
    "serving": "1/1",
    "selector": "bowsprit.dev/model=llama,bowsprit.dev/role=head",
    "url": "http://llama.default.svc:8000",
    "plan": {
        "replicas": [
            {
                "index": 0,
                "revision": "5f7c9d",
                "product": "NVIDIA-A100-80GB-PCIe",
                "tensor": 1,
                "pipeline": 3,
                "gpusPerPod": 1,
                "layerPartition": [27, 27, 26],
                "pods": [{"node": "a", "gpus": 1}] * 3,
                "stages": [
                    {"layers": 27, "weightsGiB": 45.0, "kvGiB": 10.5, "otherGiB": 1.25, "capacityGiB": 73.6}
                ],
                "why": "3 GPUs are the fewest that hold it.",
            }
        ]
    },
    "revisions": {"serving": "5f7c9d", "target": "5f7c9d"},
    "waiting": {
        "gpusShort": 2,
        "position": 1,
        "product": "NVIDIA-A100-80GB-PCIe",
        "reason": "InsufficientGPUs",
    },
    "layout": "tp1/pp3",
    "gpus": 3,
    "architecture": "LlamaForCausalLM",
    "plugins": "my-opt==1.2.3",
}


def patch_status(control_plane: ControlPlane, namespace: str, status: dict[str, Any]) -> None:
    control_plane.kubectl(
        "patch", "mdep", "llama", "-n", namespace, "--subresource=status", "--type=merge", "-p",
        json.dumps({"status": status}),
    )  # fmt: skip
