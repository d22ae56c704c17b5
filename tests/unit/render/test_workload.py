from __future__ import annotations

import json
from typing import Any

import pytest

from bowsprit.plan.result import Layout
from bowsprit.render import labels
from bowsprit.render.layouts import layout_key
from bowsprit.render.revision import (
    from_controller_revision,
    revision_of,
    target_revision,
    to_controller_revision,
)
from bowsprit.render.services import services
from bowsprit.render.workload import workload
from bowsprit_runtime.self_check import check_of
from tests.unit.render.examples import (
    CPUS,
    FACTS,
    FIVE_PODS,
    IMAGES,
    LAYOUTS,
    ONE_GPU,
    ONE_POD,
    OWNER,
    TENSOR_4,
    revision,
    spec,
)


def templates(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    if manifest["kind"] == "Deployment":
        return [manifest["spec"]["template"]]
    group = manifest["spec"]["leaderWorkerTemplate"]
    return [group["leaderTemplate"], group["workerTemplate"]]


def engine(template: dict[str, Any]) -> dict[str, Any]:
    (found,) = [each for each in template["spec"]["containers"] if each["name"] == "engine"]
    return found


def pre_stop(template: dict[str, Any]) -> list[str]:
    command: list[str] = engine(template)["lifecycle"]["preStop"]["exec"]["command"]
    return command


def env(template: dict[str, Any]) -> dict[str, Any]:
    variables = engine(template)["env"]
    assert len({variable["name"] for variable in variables}) == len(variables)
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in variables}


def option(template: dict[str, Any], flag: str) -> str | None:
    args: list[str] = engine(template)["args"]
    return args[args.index(flag) + 1] if flag in args else None


def test_one_pod_is_a_deployment_that_never_surges() -> None:
    manifest = workload(OWNER, revision(), ONE_POD, 3)
    assert (manifest["kind"], manifest["spec"]["replicas"]) == ("Deployment", 3)
    assert manifest["spec"]["strategy"] == {"type": "Recreate"}


def test_several_pods_are_a_group_that_restarts_as_a_whole_and_never_surges() -> None:
    manifest = workload(OWNER, revision(), FIVE_PODS, 3)
    group = manifest["spec"]["leaderWorkerTemplate"]
    assert (manifest["kind"], manifest["spec"]["replicas"], group["size"]) == ("LeaderWorkerSet", 3, 5)
    assert group["restartPolicy"] == "RecreateGroupOnPodRestart"
    rolling = manifest["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    assert (rolling["maxSurge"], rolling["maxUnavailable"]) == (0, "100%")


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_key)
def test_every_pod_is_gated_and_holds_its_gpus(layout: Layout) -> None:
    for template in templates(workload(OWNER, revision(), layout, 1)):
        assert template["spec"]["schedulingGates"] == [{"name": "bowsprit.dev/placement"}]
        assert engine(template)["resources"]["limits"]["nvidia.com/gpu"] == str(layout.gpus_per_pod)


def test_a_deployment_selects_its_own_pods_and_the_service_the_heads() -> None:
    what = revision()
    alone, group = workload(OWNER, what, ONE_POD, 1), workload(OWNER, what, FIVE_PODS, 1)
    (service,) = services(OWNER, what.hash)

    def selects(selector: dict[str, str], template: dict[str, Any]) -> bool:
        return selector.items() <= template["metadata"]["labels"].items()

    head, worker = templates(group)
    (pod,) = templates(alone)
    selector = alone["spec"]["selector"]["matchLabels"]
    assert [selects(selector, each) for each in (pod, head, worker)] == [True, False, False]
    reached = [selects(service["spec"]["selector"], each) for each in (pod, head, worker)]
    assert reached == [True, True, False]
    other = revision(engine={"args": ["--x"]})
    assert not selects(service["spec"]["selector"], templates(workload(OWNER, other, ONE_POD, 1))[0])


def test_ranks_of_a_group_differ_only_in_what_makes_them_head_or_worker() -> None:
    head, worker = templates(workload(OWNER, revision(plugins=[{"image": "a"}]), FIVE_PODS, 1))
    assert (option(head, "--node-rank"), option(worker, "--node-rank")) == ("0", "$(LWS_WORKER_INDEX)")
    assert "--headless" not in engine(head)["args"]
    assert "--headless" in engine(worker)["args"]
    for flag in ("--nnodes", "--master-addr", "--master-port", "--pipeline-parallel-size"):
        assert option(head, flag) == option(worker, flag) is not None
    assert env(head) == env(worker)
    assert head["spec"]["initContainers"] == worker["spec"]["initContainers"]
    assert head["spec"]["volumes"] == worker["spec"]["volumes"]


def test_a_worker_has_no_port_and_no_probe_over_http() -> None:
    probes = {"livenessProbe": {"httpGet": {"path": "/x", "port": 1}}, "startupProbe": {"periodSeconds": 5}}
    template = {"spec": {"containers": [{"name": "engine", **probes}, {"name": "proxy", **probes}]}}
    head, worker = templates(workload(OWNER, revision(template=template), FIVE_PODS, 1))
    assert not {"ports", "readinessProbe", "startupProbe"} & engine(worker).keys()
    assert "httpGet" not in engine(worker)["livenessProbe"]
    assert engine(head)["livenessProbe"]["httpGet"]["path"] == "/x"
    assert worker["spec"]["containers"][1]["livenessProbe"] == probes["livenessProbe"]


def test_a_worker_takes_a_probe_that_runs_a_command() -> None:
    probe = {"exec": {"command": ["true"]}}
    template = {"spec": {"containers": [{"name": "engine", "livenessProbe": probe}]}}
    _, worker = templates(workload(OWNER, revision(template=template), FIVE_PODS, 1))
    assert engine(worker)["livenessProbe"]["exec"] == probe["exec"]


API_KEYS: dict[str, dict[str, Any]] = {
    "nobody asks for a key": {},
    "a key in the environment": {"env": [{"name": "VLLM_API_KEY", "value": "x"}]},
    "a key in the arguments": {"args": ["--api-key", "x"]},
}


@pytest.mark.parametrize("case", API_KEYS)
def test_ready_means_that_the_model_is_listed_by_its_name_and_alive_needs_no_key(case: str) -> None:
    (pod,) = templates(workload(OWNER, revision(engine=API_KEYS[case]), ONE_POD, 1))
    ready = engine(pod)["readinessProbe"]["exec"]["command"]
    assert ready == ["python3", "/opt/bowsprit/runtime", "ready", "http://127.0.0.1:8000", "llama"]
    assert {engine(pod)[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe")} == {
        "/health"
    }


def test_the_self_check_is_the_heads_and_says_what_to_ask_where() -> None:
    rollout = {"verify": {"prompt": "$(HOME) costs $5?", "contains": "yes"}}
    tls = {"args": ["--ssl-certfile", "/tls/crt"]}
    head, worker = templates(workload(OWNER, revision(rollout=rollout, engine=tls), FIVE_PODS, 1))
    asked = env(head)["BOWSPRIT_VERIFY"]
    assert "BOWSPRIT_VERIFY" not in env(worker)
    assert json.loads(asked.replace("$$", "$")) == {
        "url": "https://127.0.0.1:8000",
        "model": "llama",
        "path": "/v1/completions",
        "prompt": "$(HOME) costs $5?",
        "max_tokens": 64,
        "contains": "yes",
    }
    assert "$(" not in asked.replace("$$", ""), "Kubernetes would put a variable there"
    assert check_of({"BOWSPRIT_VERIFY": asked}) is not None, "the runtime can read it"


def test_every_rank_is_started_by_the_runtime_of_the_revision() -> None:
    head, worker = templates(workload(OWNER, revision(), FIVE_PODS, 1))
    for template in (head, worker):
        assert engine(template)["command"] == ["python3", "/opt/bowsprit/runtime", "launch"]
        runtime = template["spec"]["initContainers"][0]
        assert (runtime["name"], runtime["image"]) == ("runtime", IMAGES["runtime"])
        mounts = {mount["name"]: mount["mountPath"] for mount in engine(template)["volumeMounts"]}
        assert mounts["bowsprit-runtime"] == "/opt/bowsprit/runtime"


def test_a_worker_is_judged_by_the_runtime_and_stops_after_its_head() -> None:
    _, worker = templates(workload(OWNER, revision(), FIVE_PODS, 1))
    runtime = ["python3", "/opt/bowsprit/runtime"]
    assert engine(worker)["livenessProbe"]["exec"]["command"] == [*runtime, "alive"]
    assert pre_stop(worker) == [*runtime, "drain", "8000"]


@pytest.mark.parametrize(
    ("template", "seconds"),
    [({}, ("10", "70")), ({"terminationGracePeriodSeconds": 330}, ("10", "310"))],
    ids=["by default", "a long grace period"],
)
def test_a_head_serves_until_its_clients_have_gone(
    template: dict[str, Any], seconds: tuple[str, str]
) -> None:
    head, _ = templates(workload(OWNER, revision(template={"spec": template}), FIVE_PODS, 1))
    assert pre_stop(head) == ["python3", "/opt/bowsprit/runtime", "leave", *seconds]


def test_images_that_preflight_has_run_are_named_by_their_digests() -> None:
    pinned = {"engine": "vllm@sha256:1", "plugin-0": "a@sha256:2", "runtime": "runtime@sha256:3"}
    what = revision_of(spec(plugins=[{"image": "a:1"}]), FACTS, OWNER.name, pinned)
    for template in templates(workload(OWNER, what, FIVE_PODS, 1)):
        named = {each["name"]: each["image"] for each in template["spec"]["initContainers"]}
        assert named == {
            "runtime": "runtime@sha256:3",
            "plugin-0": "a@sha256:2",
            "install-plugins": "vllm@sha256:1",
        }
        assert engine(template)["image"] == "vllm@sha256:1"


def test_an_operator_with_another_runtime_image_renders_a_stored_revision_as_before() -> None:
    stored = from_controller_revision(to_controller_revision(revision(), OWNER))
    assert stored is not None
    again = target_revision(
        spec(), FACTS, OWNER.name, {"runtime": "registry.example.com/runtime:2"}, [stored]
    )
    assert workload(OWNER, again, FIVE_PODS, 1) == workload(OWNER, revision(), FIVE_PODS, 1)


def containers(template: dict[str, Any]) -> list[dict[str, Any]]:
    pod: dict[str, Any] = template["spec"]
    return [*pod["initContainers"], *pod["containers"]]


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_key)
def test_every_container_states_its_own_requests_and_limits(layout: Layout) -> None:
    """A LimitRange gives its defaults to whoever does not, and a ResourceQuota refuses him."""
    what = revision(plugins=[{"image": "a"}], model={"uri": "oci://registry.example.com/llama:1"})
    for template in templates(workload(OWNER, what, layout, 1)):
        for container in containers(template):
            for section in ("requests", "limits"):
                assert {"cpu", "memory"} <= container["resources"][section].keys(), container["name"]


RESOURCES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing said: ours, for three GPUs with a third of 140 GB each": (
        {},
        {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"cpu": "48", "memory": "228Gi"}},
    ),
    "a request for memory: no word of ours about memory": (
        {"requests": {"memory": "600Gi"}},
        {"requests": {"cpu": "2", "memory": "600Gi"}, "limits": {"cpu": "48"}},
    ),
    "a limit for CPUs: no word of ours about CPUs": (
        {"limits": {"cpu": 2}},
        {"requests": {"memory": "8Gi"}, "limits": {"cpu": 2, "memory": "228Gi"}},
    ),
    "another resource beside ours": (
        {"limits": {"rdma/hca": 1}},
        {
            "requests": {"cpu": "2", "memory": "8Gi"},
            "limits": {"cpu": "48", "memory": "228Gi", "rdma/hca": 1},
        },
    ),
}


@pytest.mark.parametrize("case", RESOURCES)
def test_resources_of_the_engine(case: str) -> None:
    given, wanted = RESOURCES[case]
    (pod,) = templates(workload(OWNER, revision(engine={"resources": given}), ONE_POD, 1))
    gpus = {"nvidia.com/gpu": "3"}
    assert engine(pod)["resources"] == {**wanted, "limits": {**wanted["limits"], **gpus}}


def test_probes_speak_tls_when_the_engine_does() -> None:
    args = ["--ssl-certfile", "/tls/crt", "--ssl-keyfile", "/tls/key"]
    (pod,) = templates(workload(OWNER, revision(engine={"args": args}), ONE_POD, 1))
    assert engine(pod)["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"


@pytest.mark.parametrize(
    ("layout", "partition"),
    [(ONE_POD, "27,27,26"), (FIVE_PODS, "16,16,16,16,16"), (TENSOR_4, None), (ONE_GPU, None)],
    ids=["one pod", "five pods", "no stages", "one GPU"],
)
def test_the_layer_partition_is_said_where_there_are_stages(layout: Layout, partition: str | None) -> None:
    for template in templates(workload(OWNER, revision(), layout, 1)):
        assert env(template).get("VLLM_PP_LAYER_PARTITION") == partition


def test_one_gpu_leaves_the_executor_to_vllm() -> None:
    (one,) = templates(workload(OWNER, revision(), ONE_GPU, 1))
    (three,) = templates(workload(OWNER, revision(), ONE_POD, 1))
    assert (
        option(one, "--distributed-executor-backend"),
        option(three, "--distributed-executor-backend"),
    ) == (
        None,
        "mp",
    )


def test_kubernetes_expands_what_users_write_and_leaves_alone_what_bowsprit_writes() -> None:
    what = revision(architecture={"hfOverrides": {"a": "$(HOME) $5"}}, engine={"args": ["--x", "$(HOME)"]})
    (pod,) = templates(workload(OWNER, what, ONE_GPU, 1))
    assert option(pod, "--hf-overrides") == '{"a":"$$(HOME) $$5"}'
    assert engine(pod)["args"][-2:] == ["--x", "$(HOME)"]


def test_a_users_variable_takes_the_place_of_ours() -> None:
    what = revision(engine={"env": [{"name": "VLLM_NO_USAGE_STATS", "value": "0"}]})
    (pod,) = templates(workload(OWNER, what, ONE_GPU, 1))
    assert env(pod)["VLLM_NO_USAGE_STATS"] == "0"


def test_the_planner_and_the_engine_reckon_with_the_same_batch() -> None:
    from bowsprit.render.wishes import demand_of

    for args in ([], ["--max-num-seqs", "4096"], ["--max-num-batched-tokens=8k"], ["--max_num_seqs=3"]):
        engine_fields = {"args": args}
        demand = demand_of(spec(engine=engine_fields))
        (pod,) = templates(workload(OWNER, revision(engine=engine_fields), ONE_GPU, 1))
        given = {flag: option(pod, flag) for flag in ("--max-num-batched-tokens", "--max-num-seqs")}
        if not any("batched" in arg for arg in args):
            assert given["--max-num-batched-tokens"] == str(demand.max_batched_tokens)
        if not any("seqs" in arg for arg in args):
            assert given["--max-num-seqs"] == str(demand.max_sequences)


def test_pods_satisfy_the_restricted_pod_security_standard() -> None:
    what = revision(plugins=[{"image": "a"}, {"requirement": "b==1"}])
    for template in templates(workload(OWNER, what, FIVE_PODS, 1)):
        pod = template["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        for container in containers(template):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        allowed = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim"}
        assert all(volume.keys() - {"name"} <= allowed for volume in pod["volumes"])


def test_labels_hold_against_a_template() -> None:
    wanted = {labels.ROLE: "worker", labels.MODEL: "other", "team": "chat"}
    what = revision(template={"metadata": {"labels": wanted}})
    (pod,) = templates(workload(OWNER, what, ONE_GPU, 1))
    found = pod["metadata"]["labels"]
    assert (found[labels.ROLE], found[labels.MODEL], found["team"]) == ("head", "llama", "chat")


def test_a_port_of_the_template_takes_no_probe_and_no_service_away() -> None:
    """Probes and Service go by number: a user may name the port otherwise."""
    ports = [{"containerPort": 8000, "name": "api"}]
    what = revision(template={"spec": {"containers": [{"name": "engine", "ports": ports}]}})
    (pod,) = templates(workload(OWNER, what, ONE_GPU, 1))
    (service,) = services(OWNER, what.hash)
    asked = {engine(pod)[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe")}
    assert asked == {service["spec"]["ports"][0]["targetPort"]} == {engine(pod)["ports"][0]["containerPort"]}


def test_pods_on_cpus_ask_for_cpus_and_go_where_the_scheduler_puts_them() -> None:
    what = revision(accelerator={"resource": "cpu"})
    for template in templates(workload(OWNER, what, CPUS, 1)):
        pod = template["spec"]
        assert "schedulingGates" not in pod
        assert set(engine(template)["resources"]["limits"]) == {"cpu", "memory"}
        assert engine(template)["resources"]["requests"] == {"cpu": "2", "memory": "74Gi"}
        assert not any(each.get("key") == "cpu" for each in pod["tolerations"])
        preferred = pod["affinity"]["nodeAffinity"]
        assert "requiredDuringSchedulingIgnoredDuringExecution" not in preferred


def test_cores_of_the_users_own_take_the_place_of_ours() -> None:
    given = {"requests": {"cpu": "500m"}, "limits": {"cpu": 1}}
    what = revision(accelerator={"resource": "cpu"}, engine={"resources": given})
    for template in templates(workload(OWNER, what, CPUS, 1)):
        found = engine(template)["resources"]
        assert (found["requests"]["cpu"], found["limits"]["cpu"]) == ("500m", 1)
