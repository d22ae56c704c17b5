from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.render.problems import problems
from bowsprit.render.template import MERGE_KEYS, merge
from bowsprit.render.workload import workload
from tests.unit.render.examples import FIVE_PODS, ONE_GPU, OWNER, revision, spec

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "maps are merged key by key": (
        {"a": {"b": 1, "c": 2}},
        {"a": {"c": 3, "d": 4}},
        {"a": {"b": 1, "c": 3, "d": 4}},
    ),
    "null deletes": ({"a": 1, "b": {"c": 1, "d": 2}}, {"a": None, "b": {"c": None}}, {"b": {"d": 2}}),
    "containers are merged by name and new ones come last": (
        {"containers": [{"name": "engine", "image": "a", "tty": True}]},
        {"containers": [{"name": "proxy"}, {"name": "engine", "image": "b"}]},
        {"containers": [{"name": "engine", "image": "b", "tty": True}, {"name": "proxy"}]},
    ),
    "a variable is replaced whole, where it stood": (
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"env": [{"name": "A", "valueFrom": {"x": 1}}, {"name": "C"}]},
        {"env": [{"name": "A", "valueFrom": {"x": 1}}, {"name": "B", "value": "2"}, {"name": "C"}]},
    ),
    "a volume is replaced whole": (
        {"volumes": [{"name": "home", "emptyDir": {}}]},
        {"volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "c"}}]},
        {"volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "c"}}]},
    ),
    "mounts are merged by path": (
        {"volumeMounts": [{"name": "a", "mountPath": "/a"}]},
        {"volumeMounts": [{"name": "b", "mountPath": "/a"}, {"name": "c", "mountPath": "/c"}]},
        {"volumeMounts": [{"name": "b", "mountPath": "/a"}, {"name": "c", "mountPath": "/c"}]},
    ),
    "a port is merged into the one of its number": (
        {"ports": [{"name": "http", "containerPort": 8000}]},
        {"ports": [{"containerPort": 8000, "hostPort": 80}, {"containerPort": 9000}]},
        {"ports": [{"name": "http", "containerPort": 8000, "hostPort": 80}, {"containerPort": 9000}]},
    ),
    "tolerations are united": (
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "a"}, {"key": "b"}]},
        {"tolerations": [{"key": "a"}, {"key": "b"}]},
    ),
    "other lists are replaced": ({"command": ["a", "b"]}, {"command": ["c"]}, {"command": ["c"]}),
    "a probe's handler is replaced and its numbers stay": (
        {"livenessProbe": {"httpGet": {"path": "/"}, "periodSeconds": 10}},
        {"livenessProbe": {"exec": {"command": ["x"]}}},
        {"livenessProbe": {"exec": {"command": ["x"]}, "periodSeconds": 10}},
    ),
    "the same handler is merged": (
        {"httpGet": {"path": "/", "port": "http"}},
        {"httpGet": {"path": "/x"}},
        {"httpGet": {"path": "/x", "port": "http"}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_merging(case: str) -> None:
    base, patch, merged = CASES[case]
    assert merge(base, patch) == merged


NAMES = "must be a list of objects, each with name: entries are merged by it"
OBJECT = "must be an object: leave it out to keep what Bowsprit sets"
PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "a list of names": ({"spec": {"containers": ["engine"]}}, f"spec.containers: {NAMES}"),
    "volumes without a name": ({"spec": {"volumes": [{"emptyDir": {}}]}}, f"spec.volumes: {NAMES}"),
    "deleted containers": ({"spec": {"containers": None}}, f"spec.containers: {NAMES}"),
    "a port that is text": (
        {"spec": {"containers": [{"name": "engine", "ports": [{"containerPort": "http"}]}]}},
        f"spec.containers[engine].ports: {NAMES}".replace("name", "containerPort"),
    ),
    "mounts that are one mount": (
        {"spec": {"initContainers": [{"name": "a", "volumeMounts": {"mountPath": "/a"}}]}},
        f"spec.initContainers[a].volumeMounts: {NAMES}".replace("name", "mountPath"),
    ),
    "tolerations by name": (
        {"spec": {"tolerations": ["spot"]}},
        "spec.tolerations: must be a list of tolerations: add them in spec.accelerator.tolerations",
    ),
    "a node selector that is text": ({"spec": {"nodeSelector": "gpu"}}, f"spec.nodeSelector: {OBJECT}"),
    "a node selector for a number": (
        {"spec": {"nodeSelector": {"gpus": 8}}},
        "spec.nodeSelector: must map labels to texts: put numbers and true or false in quotes",
    ),
    "a node selector for a list": (
        {"spec": {"nodeSelector": {"containers": [None]}}},
        "spec.nodeSelector: must map labels to texts: put numbers and true or false in quotes",
    ),
    "deleted resources": (
        {"spec": {"containers": [{"name": "engine", "resources": None}]}},
        f"spec.containers[engine].resources: {OBJECT}",
    ),
    "a patch directive": (
        {"spec": {"$patch": "replace"}},
        "spec.$patch: patch directives are not supported: write the fields themselves (null deletes one)",
    ),
    "a grace period with a unit": (
        {"spec": {"terminationGracePeriodSeconds": "30s"}},
        "spec.terminationGracePeriodSeconds: must be a number of seconds, 0 or more",
    ),
    "a spec that is a list": ({"spec": []}, f"spec: {OBJECT}"),
    "labels that are a list": ({"metadata": {"labels": ["a"]}}, f"metadata.labels: {OBJECT}"),
    "a key that is a number": ({"spec": {8000: "http"}}, "spec.8000: must be text: put it in quotes"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_problem_says_where_and_what_to_do(case: str) -> None:
    template, message = PROBLEMS[case]
    assert problems(spec(template=template)) == (f"spec.template.{message}",)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


NOT_JSON: dict[str, tuple[Any, str]] = {
    "not a number": (
        float("nan"),
        "nan is not a number that JSON has: write a finite one, or put it in quotes",
    ),
    "infinity": (
        float("-inf"),
        "-inf is not a number that JSON has: write a finite one, or put it in quotes",
    ),
    "a date": (date(2026, 11, 30), "2026-11-30 is a date in YAML: put it in quotes"),
    "depth": (nested(5_000), "is nested more than 64 levels deep: nothing in Kubernetes or vLLM is"),
}


@pytest.mark.parametrize("case", NOT_JSON)
def test_what_json_cannot_hold_is_refused(case: str) -> None:
    value, message = NOT_JSON[case]
    fields = {
        "spec.template": {"template": {"spec": {"a": value}}},
        "spec.architecture.hfOverrides": {"architecture": {"hfOverrides": {"a": [value]}}},
        "spec.engine.resources": {"engine": {"resources": {"limits": {"cpu": value}}}},
        "spec.engine.env": {"engine": {"env": [{"name": "A", "value": value}]}},
        "spec.accelerator.tolerations": {"accelerator": {"tolerations": [{"tolerationSeconds": value}]}},
    }
    assert [problems(spec(**each)) for each in fields.values()] == [
        (f"{path}: {message}",) for path in fields
    ]


VARIABLES: dict[str, tuple[dict[str, Any], str]] = {
    "a variable given twice": (
        {"engine": {"env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]}},
        "spec.engine.env: A is given 2 times: keep one",
    ),
    "the group's own": (
        {"engine": {"env": [{"name": "LWS_WORKER_INDEX", "value": "1"}]}},
        "spec.engine.env: LWS_WORKER_INDEX is Bowsprit's or LeaderWorkerSet's own: choose another name",
    ),
    "the runtime's own": (
        {"engine": {"env": [{"name": "BOWSPRIT_PLUGINS", "value": "[]"}]}},
        "spec.engine.env: BOWSPRIT_PLUGINS is Bowsprit's or LeaderWorkerSet's own: choose another name",
    ),
}


@pytest.mark.parametrize("probe", [None, {"httpGet": {"path": "/health", "port": 8000}}])
def test_a_probe_that_would_not_wait_for_the_self_check_is_refused(probe: Any) -> None:
    verify = {"verify": {"prompt": "1 + 1 ="}}
    template = {"spec": {"containers": [{"name": "engine", "readinessProbe": probe}]}}
    assert problems(spec(template=template)) == ()
    (message,) = problems(spec(template=template, rollout=verify))
    assert message.startswith("spec.rollout.verify: the readinessProbe that spec.template gives the engine")


@pytest.mark.parametrize("case", VARIABLES)
def test_a_variable_that_would_hide_another_is_refused(case: str) -> None:
    fields, message = VARIABLES[case]
    assert problems(spec(**fields)) == (message,)


UNCHUNKED = "--no-enable-chunked-prefill"
BATCHES: dict[str, tuple[list[str], int | None, str]] = {
    "more sequences than tokens": (
        ["--max-num-batched-tokens=64", "--max-num-seqs=65"],
        None,
        "--max-num-seqs 65 is more than --max-num-batched-tokens 64: raise the tokens, or leave one out",
    ),
    "whole prompts of unknown length": (
        [UNCHUNKED],
        None,
        f"with {UNCHUNKED} a step takes the longest prompt whole: say how long in spec.capacity.maxModelLen",
    ),
    "whole prompts longer than a step": (
        [UNCHUNKED, "--max-num-batched-tokens", "4K"],
        8192,
        (
            f"with {UNCHUNKED} --max-num-batched-tokens 4096 must be at least maxModelLen 8192: raise it, or "
            "leave it out"
        ),
    ),
}


@pytest.mark.parametrize("case", BATCHES)
def test_a_batch_that_vllm_would_refuse_is_refused(case: str) -> None:
    args, longest, message = BATCHES[case]
    assert problems(spec(engine={"args": args}, capacity={"maxModelLen": longest})) == (
        f"spec.engine.args: {message}",
    )


def test_whole_prompts_that_fit_are_fine() -> None:
    args = [UNCHUNKED, "--max-num-batched-tokens", "8K", "--max-num-seqs", "64"]
    assert problems(spec(engine={"args": args}, capacity={"maxModelLen": 8192})) == ()


def test_a_path_of_the_users_own_is_fine_beside_plugins() -> None:
    path = {"env": [{"name": "PYTHONPATH", "value": "/x"}]}
    assert problems(spec(engine=path, plugins=[{"image": "a"}])) == ()


def test_every_problem_is_found_at_once() -> None:
    template = {"metadata": {"labels": 1}, "spec": {"volumes": 1, "containers": [{"name": "a", "env": 1}]}}
    assert len(problems(spec(template=template))) == 3


_FIELDS = (
    "metadata spec labels annotations tolerations nodeSelector resources limits livenessProbe httpGet exec"
)
_KEYS = st.sampled_from(
    [*MERGE_KEYS, *MERGE_KEYS.values(), *_FIELDS.split(), "terminationGracePeriodSeconds", "$patch"]
)
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just("engine"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=12,
)
_SECTIONS = st.dictionaries(_KEYS, _ANY, max_size=4)


@given(
    st.dictionaries(_KEYS, _ANY, max_size=3)
    | st.fixed_dictionaries({"metadata": _SECTIONS, "spec": _SECTIONS})
)
def test_a_template_has_problems_or_is_rendered_with_its_gate_labels_and_gpus(
    template: dict[str, Any],
) -> None:
    if problems(spec(template=template)):
        return
    what = revision(template=template)
    for layout in (ONE_GPU, FIVE_PODS):
        manifest = workload(OWNER, what, layout, 1)["spec"]
        pod = manifest.get("template") or manifest["leaderWorkerTemplate"]["workerTemplate"]
        assert {"name": "bowsprit.dev/placement"} in pod["spec"]["schedulingGates"]
        assert pod["metadata"]["labels"]["bowsprit.dev/revision"] == what.hash
        engines = [each for each in pod["spec"]["containers"] if each["name"] == "engine"]
        assert [each["resources"]["limits"]["nvidia.com/gpu"] for each in engines] == ["1"]


OWN_VOLUMES = {
    "bowsprit-plugins": True,  # holds what was installed
    "bowsprit-x": True,
    "home": False,  # may be a cache of the user's
    "shared-memory": False,
    "models": False,
}


@pytest.mark.parametrize("name", OWN_VOLUMES)
def test_volumes_that_hold_the_runtime_are_not_replaced(name: str) -> None:
    found = problems(spec(template={"spec": {"volumes": [{"name": name, "emptyDir": {}}]}}))
    assert [name in each for each in found] == ([True] if OWN_VOLUMES[name] else [])


def test_a_mount_of_the_users_own_at_dev_shm_takes_the_place_of_ours() -> None:
    from bowsprit.render.workload import workload
    from tests.unit.render.examples import ONE_GPU, OWNER, revision

    mine = {"name": "shm", "mountPath": "/dev/shm"}
    template = {
        "spec": {
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
            "containers": [{"name": "engine", "volumeMounts": [mine]}],
        }
    }
    pod = workload(OWNER, revision(template=template), ONE_GPU, 1)["spec"]["template"]["spec"]
    mounts = [each for each in pod["containers"][0]["volumeMounts"] if each["mountPath"] == "/dev/shm"]
    assert mounts == [mine]
