"""The preflight Job runs what serving pods run, without what would bind it to a GPU or to serving."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bowsprit.api import defaults
from bowsprit.render.preflight import preflight_config_map, preflight_job, preflight_key, preflight_name
from bowsprit.render.surroundings import SMALL_FILES
from bowsprit.render.workload import workload
from bowsprit_runtime.preflight.checkpoint import MAX_HEADER_BYTES
from tests.unit.render.examples import EXAMPLES, IMAGES, ONE_GPU, OWNER, revision, spec

PLUGINS = {"plugins": [{"image": "registry.example.com/a:1", "entryPoints": ["a"]}]}


def key(**fields: Any) -> str:
    return preflight_key(spec(**fields), OWNER.namespace)


def job(**fields: Any) -> dict[str, Any]:
    return preflight_job(OWNER, key(**fields), spec(**fields), IMAGES["runtime"])


def pod(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = job(**fields)["spec"]["template"]["spec"]
    return found


def serving(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = workload(OWNER, revision(**fields), ONE_GPU, 1)["spec"]["template"]["spec"]
    return found


def engine(of: dict[str, Any]) -> dict[str, Any]:
    (found,) = of["containers"]
    return dict(found)


def variables(of: dict[str, Any]) -> dict[str, Any]:
    named = engine(of)["env"]
    assert len({each["name"] for each in named}) == len(named)
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in named}


def request(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(variables(pod(**fields))["BOWSPRIT_PREFLIGHT"])
    return found


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {"template", "oci"}))
def test_what_is_proven_is_what_serves(name: str) -> None:
    fields = EXAMPLES[name].fields
    judged, serves = pod(**fields), serving(**fields)
    assert engine(judged)["image"] == engine(serves)["image"]
    assert judged["volumes"] == serves["volumes"]
    assert engine(judged)["volumeMounts"] == engine(serves)["volumeMounts"]
    for ours, theirs in zip(judged["initContainers"], serves["initContainers"], strict=True):
        assert {**ours, "terminationMessagePolicy": ""} == {**theirs, "terminationMessagePolicy": ""}
    shared = variables(serves).keys() - {
        "VLLM_HOST_IP",
        "VLLM_ENGINE_READY_TIMEOUT_S",
        "BOWSPRIT_LAYOUT",
        "VLLM_PP_LAYER_PARTITION",
        "BOWSPRIT_VERIFY",
    }
    assert {key: variables(judged)[key] for key in shared} == {key: variables(serves)[key] for key in shared}


def test_arguments_are_those_of_the_head_without_the_parallel_layout() -> None:
    fields = {"engine": {"args": ["--enforce-eager", "$(HOME)"]}, "capacity": {"maxModelLen": 4096}}
    head = engine(serving(**fields))["args"]
    layout = ["--tensor-parallel-size", "1", "--pipeline-parallel-size", "1"]
    at = head.index(layout[0])
    assert head[at : at + 4] == layout
    assert request(**fields)["arguments"] == head[:at] + head[at + 4 :]


SIZES: dict[str, tuple[dict[str, Any], list[int], int | None]] = {
    "nothing fixed": ({}, [1, 2, 4, 8], None),
    "a tensor size": ({"parallelism": {"tensor": 3}}, [3], None),
    "dimensions that are padded": (
        {"architecture": {"unevenTensorParallel": True}},
        [1, 2, 3, 4, 5, 6, 7, 8],
        None,
    ),
    "stages": ({"parallelism": {"pipeline": 5}}, [1, 2, 4, 8], 5),
    "stages by their layers": ({"parallelism": {"layerPartition": [40, 40]}}, [1, 2, 4, 8], 2),
    "CPUs": ({"accelerator": {"resource": "cpu"}}, [1], None),
}


@pytest.mark.parametrize("case", SIZES)
def test_sizes_that_are_tried(case: str) -> None:
    fields, tensors, pipeline = SIZES[case]
    assert (request(**fields)["tensors"], request(**fields)["pipeline"]) == (tensors, pipeline)


def test_no_gpu_is_asked_for_or_seen_and_nodes_without_gpus_come_first() -> None:
    found = pod(accelerator={"nodeSelector": {"pool": "gpu", "kubernetes.io/arch": "arm64"}})
    for container in (*found["containers"], *found["initContainers"]):
        assert not any("gpu" in name for part in container["resources"].values() for name in part)
    assert variables(found)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert found["nodeSelector"] == {"kubernetes.io/arch": "arm64"}
    assert "schedulingGates" not in found
    (preferred,) = found["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert {each["operator"] for each in preferred["preference"]["matchExpressions"]} == {"DoesNotExist"}
    assert {"key": "nvidia.com/gpu", "operator": "Exists"} in found["tolerations"]
    assert {"key": "amd.com/gpu", "operator": "Exists"} in found["tolerations"]


def test_every_container_is_restricted_bounded_and_tells_its_last_lines() -> None:
    found = pod(**PLUGINS, model={"uri": "oci://registry.example.com/llama:1"})
    names = [each["name"] for each in found["initContainers"]]
    assert names == ["runtime", "model", "plugin-0", "install-plugins"]
    for container in (*found["containers"], *found["initContainers"]):
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
        for section in ("requests", "limits"):
            assert {"cpu", "memory"} <= container["resources"][section].keys()
    assert found["securityContext"]["runAsNonRoot"] is True
    assert (found["restartPolicy"], found["automountServiceAccountToken"]) == ("Never", False)
    assert found["activeDeadlineSeconds"] > request()["timeLimitSeconds"]


MEMORY: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "nothing said": ({}, ("2Gi", "8Gi")),
    "a limit of the user's": ({"limits": {"memory": "64Gi"}}, ("2Gi", "64Gi")),
    "a limit below what is asked for": ({"limits": {"memory": "1Gi"}}, ("1Gi", "1Gi")),
    "requests only, which are for serving": ({"requests": {"memory": "64Gi"}}, ("2Gi", "8Gi")),
}


@pytest.mark.parametrize("case", MEMORY)
def test_memory(case: str) -> None:
    given, wanted = MEMORY[case]
    found = engine(pod(engine={"resources": given}))["resources"]
    assert (found["requests"]["memory"], found["limits"]["memory"]) == wanted


def test_of_weights_in_an_image_only_the_headers_are_copied(tmp_path: Path) -> None:
    """By the same command, with this machine's programs in place of busybox."""
    weights = tmp_path / "models/llama/the model.safetensors"
    weights.parent.mkdir(parents=True)
    with weights.open("wb") as file:
        file.write(b"header")
        file.truncate(65 * 2**20)
    (tmp_path / "models/config.json").write_text("{}")
    copy = pod(model={"uri": "oci://registry.example.com/llama:1"})["initContainers"][1]["command"]
    here = [
        each.replace("/opt/bowsprit/runtime/bin/busybox", "env")
        .replace("/mnt/model{}", f"{tmp_path}/out{{}}")
        .replace("/models", str(tmp_path / "models"))
        for each in copy
    ]
    subprocess.run(here, check=True)
    copied = Path(f"{tmp_path}/out{tmp_path}/models")
    assert (copied / "config.json").read_text() == "{}"
    seen = copied / "llama/the model.safetensors"
    assert seen.read_bytes()[:6] == b"header"
    assert seen.stat().st_size == 65 * 2**20, "a file that is cut off can be told from one that is not"
    assert seen.stat().st_blocks * 512 <= MAX_HEADER_BYTES + 2**20


def test_as_much_of_weights_is_copied_as_the_runtime_reads() -> None:
    assert f"head -c {MAX_HEADER_BYTES} " in " ".join(SMALL_FILES)


def test_the_template_gives_what_loading_needs_and_nothing_of_serving() -> None:
    template = {
        "metadata": {"labels": {"team": "chat"}, "annotations": {"sidecar.istio.io/inject": "false"}},
        "spec": {
            "priorityClassName": "production",
            "runtimeClassName": "nvidia",
            "nodeSelector": {"pool": "gpu"},
            "imagePullSecrets": [{"name": "registry"}],
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "volumes": [{"name": "site", "persistentVolumeClaim": {"claimName": "site"}}],
            "initContainers": [
                {"name": "warm", "image": "busybox"},
                {"name": "proxy", "image": "envoy", "restartPolicy": "Always"},
            ],
            "containers": [
                {
                    "name": "engine",
                    "readinessProbe": {"exec": {"command": ["true"]}},
                    "volumeMounts": [{"name": "site", "mountPath": "/opt/site"}],
                },
                {"name": "logs", "image": "logs"},
            ],
        },
    }
    whole = job(template=template)["spec"]["template"]
    found = whole["spec"]
    assert whole["metadata"]["labels"]["team"] == "chat"
    assert whole["metadata"]["annotations"] == template["metadata"]["annotations"]
    assert not {"priorityClassName", "runtimeClassName", "nodeSelector"} & found.keys()
    assert found["imagePullSecrets"] == [{"name": "registry"}]
    assert {"key": "spot", "operator": "Exists"} in found["tolerations"]
    assert [each["name"] for each in found["initContainers"]] == ["runtime", "warm"]
    assert "readinessProbe" not in engine(found)
    assert {"name": "site", "mountPath": "/opt/site"} in engine(found)["volumeMounts"]
    assert {"name": "site", "persistentVolumeClaim": {"claimName": "site"}} in found["volumes"]


def test_pods_do_not_look_like_pods_that_serve() -> None:
    whole = job()
    marks = whole["spec"]["template"]["metadata"]["labels"]
    assert whole["metadata"]["labels"]["bowsprit.dev/model"] == OWNER.name
    assert not {"bowsprit.dev/model", "bowsprit.dev/role", "bowsprit.dev/revision"} & marks.keys()
    assert marks["bowsprit.dev/preflight-of"] == OWNER.name


def test_a_verdict_ends_the_job_and_the_network_is_tried_again() -> None:
    rules = job()["spec"]["podFailurePolicy"]["rules"]
    assert [rule["action"] for rule in rules] == ["Ignore", "FailJob"]
    assert 1 in rules[1]["onExitCodes"]["values"]
    assert 75 not in rules[1]["onExitCodes"]["values"]
    assert job()["spec"]["backoffLimit"] > 0


SAME: dict[str, dict[str, Any]] = {
    "the number of replicas": {"replicas": 3},
    "where it serves": {"accelerator": {"products": ["NVIDIA-L4"], "nodeSelector": {"pool": "a"}}},
    "how many requests it holds": {"capacity": {"concurrency": 64}},
    "how much the engine gets": {
        "engine": {
            "resources": {"requests": {"memory": "64Gi"}, "limits": {"cpu": "64"}},
            "sharedMemory": "1Gi",
        }
    },
    "how it is cut into pods": {"parallelism": {"gpusPerPod": 2}},
    "its served name": {"model": {"uri": "hf://meta-llama/Llama-3.1-70B", "name": "other"}},
}
OTHER: dict[str, dict[str, Any]] = {
    "another model": {"model": {"uri": "hf://a/b"}},
    "another revision of it": {"model": {"uri": "hf://meta-llama/Llama-3.1-70B", "revision": "v2"}},
    "a token": {
        "model": {"uri": "hf://meta-llama/Llama-3.1-70B", "tokenSecretRef": {"name": "a", "key": "b"}}
    },
    "a plugin": PLUGINS,
    "an override": {"architecture": {"override": "MyOpt"}},
    "another engine": {"engine": {"image": "registry.example.com/vllm:1"}},
    "an argument": {"engine": {"args": ["--enforce-eager"]}},
    "a variable": {"engine": {"env": [{"name": "A", "value": "b"}]}},
    "a context": {"capacity": {"maxModelLen": 4096}},
    "a tensor size": {"parallelism": {"tensor": 2}},
    "AMD GPUs": {"accelerator": {"resource": "amd.com/gpu"}},
    "more memory, which is what some verdicts ask for": {
        "engine": {"resources": {"limits": {"memory": "64Gi"}}}
    },
    "another machine, whose wheels are others": {
        "accelerator": {"nodeSelector": {"kubernetes.io/arch": "arm64"}}
    },
    "the default image spelled out, which stays when the default does not": {
        "engine": {"image": defaults.ENGINE_IMAGE}
    },
    "a template": {"template": {"spec": {"imagePullSecrets": [{"name": "a"}]}}},
}


@pytest.mark.parametrize("case", SAME)
def test_no_second_preflight_for(case: str) -> None:
    assert preflight_key(spec(**SAME[case]), "chat") == preflight_key(spec(), "chat")


@pytest.mark.parametrize("case", OTHER)
def test_another_preflight_for(case: str) -> None:
    assert preflight_key(spec(**OTHER[case]), "chat") != preflight_key(spec(), "chat")


def test_memory_is_an_amount_and_not_its_spelling() -> None:
    one, other = (spec(engine={"resources": {"limits": {"memory": size}}}) for size in ("64Gi", "65536Mi"))
    assert preflight_key(one, "chat") == preflight_key(other, "chat")


def test_claims_of_one_name_are_other_models_in_another_namespace() -> None:
    claim = spec(model={"uri": "pvc://models/llama"})
    assert preflight_key(claim, "chat") != preflight_key(claim, "team")


def test_another_runtime_image_asks_for_nothing_anew() -> None:
    other = preflight_job(OWNER, key(), spec(), "registry.example.com/runtime:2")
    assert other["metadata"] == job()["metadata"]


def test_names_fit_into_a_label() -> None:
    """The Job controller labels pods with the Job's name."""
    assert len(preflight_name("a" * 40, preflight_key(spec(), "chat"))) <= 63


def test_the_report_is_kept_as_it_was_told_and_belongs_to_the_model() -> None:
    kept = preflight_config_map(OWNER, "0123456789", '{"v": 1}', {"engine": "vllm@sha256:0"})
    assert kept["metadata"]["name"] == "llama-preflight-0123456789"
    assert kept["metadata"]["ownerReferences"][0]["uid"] == OWNER.uid
    assert kept["immutable"] is True
    assert kept["data"] == {"report.json": '{"v": 1}', "images.json": '{"engine":"vllm@sha256:0"}'}


def test_the_runtime_reads_what_is_rendered() -> None:
    from bowsprit_runtime.plugins import plugins_of
    from bowsprit_runtime.preflight.request import request_of

    plugins = [
        {"image": "registry.example.com/a:1", "entryPoints": ["a"]},
        {"requirement": "b==1", "indexURL": "https://packages.example.com", "entryPoints": ["b"]},
    ]
    found = variables(pod(plugins=plugins, parallelism={"pipeline": 3}, engine={"args": ["--enforce-eager"]}))
    environ = {name: value for name, value in found.items() if isinstance(value, str)}
    asked = request_of(environ)
    assert (asked.tensors, asked.pipeline, asked.tensors_are_fixed) == ((1, 2, 4, 8), 3, False)
    assert asked.arguments[0] == "meta-llama/Llama-3.1-70B"
    assert asked.arguments[-1] == "--enforce-eager"
    first, second = plugins_of(environ)
    assert (str(first.target), str(first.wheels), first.entry_points) == (
        "/opt/bowsprit/plugins/0",
        "/opt/bowsprit/wheels/0",
        ("a",),
    )
    assert (second.requirement, second.index, second.wheels) == ("b==1", "https://packages.example.com", None)
    alone = request_of({"BOWSPRIT_PREFLIGHT": json.dumps(request(parallelism={"tensor": 3}))})
    assert alone.tensors_are_fixed
