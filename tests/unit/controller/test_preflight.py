"""Which Job runs, which report is kept and what goes: from what is there to the writes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bowsprit.api import defaults
from bowsprit.cluster.resources import CONFIG_MAPS, CONTROLLER_REVISIONS, JOBS
from bowsprit.controller.children import Child, project
from bowsprit.controller.frame import Frame, declared_of
from bowsprit.controller.knowledge import Knowledge
from bowsprit.controller.preflight import preflight_leftovers, preflight_manifests, proof_of
from bowsprit.controller.replicas import Replicas
from bowsprit.inventory.nodes import NodeView, node_facts
from bowsprit.render.preflight import preflight_config_map, preflight_job
from bowsprit.render.revision import Revision, revision_of, to_controller_revision
from bowsprit.status.attempt import Attempt, attempt_of
from bowsprit.status.preflight import unproven
from tests.unit.controller.objects import UID
from tests.unit.status.examples import FACTS
from tests.unit.status.preflight_pods import BROKEN, DIGEST, ENGINE, PODS

RUNTIME = "registry.example.com/runtime:1"


def model(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "bowsprit.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"namespace": "chat", "name": "llama", "uid": UID, "creationTimestamp": "t"},
        "spec": {"model": {"uri": "hf://meta-llama/Llama-3.1-8B"}, **spec},
    }


DECLARED = declared_of(model())
OTHER = declared_of(model(engine={"args": ["--enforce-eager"]}))
OWNER, KEY = DECLARED.owner, DECLARED.preflight


def stored(manifest: dict[str, Any], **more: Any) -> Child:
    """A child as the API server has it."""
    uid = f"uid-{manifest['metadata']['name']}"
    meta = {**manifest["metadata"], "uid": uid, "resourceVersion": "1"}
    resource = {"Job": JOBS, "ConfigMap": CONFIG_MAPS}[manifest["kind"]]
    child = project(resource, {**manifest, "metadata": meta, **more})
    assert child is not None
    return child


def job(declared: Any = DECLARED, ended: str = "") -> Child:
    conditions = [{"type": ended, "status": "True"}] if ended else []
    manifest = preflight_job(OWNER, declared.preflight, declared.deployment.spec, RUNTIME)
    return stored(manifest, status={"conditions": conditions})


def attempt(moment: str, name: str = "a", created: str = "1", of: Child | None = None) -> Attempt:
    found = attempt_of(PODS[moment])
    assert found is not None
    return replace(found, name=name, created=created, key=KEY, job=(of or job()).uid)


def report_of(declared: Any, text: str = BROKEN) -> Child:
    return stored(preflight_config_map(OWNER, declared.preflight, text, {"engine": f"vllm@{DIGEST}"}))


def frame(
    *children: Child, attempts: tuple[Attempt, ...] = (), declared: Any = DECLARED, **more: Any
) -> Frame:
    whole = Frame(
        declared=declared,
        knowledge=Knowledge(runtime_image=RUNTIME),
        children=children,
        strays=(),
        groups=(),
        replicas=Replicas(),
        target=None,
        attempts=attempts,
    )
    return replace(whole, **more)


def applied(seen: Frame) -> list[str]:
    return [f"{each['kind']}/{each['metadata']['name']}" for each in preflight_manifests(seen)]


def deleted(seen: Frame) -> list[str]:
    return [f"{child.kind}/{child.name}" for child in preflight_leftovers(seen)]


NAME = f"llama-preflight-{KEY}"
KEPT = report_of(DECLARED)
KNOWN = Knowledge(kept=KEPT.kept, runtime_image=RUNTIME)
FAILED = job(ended="Failed")

CASES: dict[str, tuple[Frame, list[str], list[str]]] = {
    "nothing is there": (frame(), [f"Job/{NAME}"], []),
    "the Job was just made": (frame(job()), [], []),
    "its pod runs": (frame(job(), attempts=(attempt("running"),)), [], []),
    "its pod has reported": (frame(job(), attempts=(attempt("fine"),)), [f"ConfigMap/{NAME}"], []),
    "its pod has reported a fault": (
        frame(job(), attempts=(attempt("a broken plugin"),)),
        [f"ConfigMap/{NAME}"],
        [],
    ),
    "the Job has ended and its pod's end is not seen yet": (
        frame(job(ended="Complete"), attempts=(attempt("running"),)),
        [],
        [],
    ),
    "the report is kept, the Job still there": (frame(job(), KEPT, knowledge=KNOWN), [], [f"Job/{NAME}"]),
    "the report is kept, the Job gone": (frame(KEPT, knowledge=KNOWN), [], []),
    "the network failed, and the Job tries again": (
        frame(job(), attempts=(attempt("the hub does not answer"),)),
        [],
        [],
    ),
    "the network failed as often as a Job tries": (
        frame(FAILED, attempts=(attempt("the hub does not answer"),)),
        [],
        [f"Job/{NAME}"],
    ),
    "it failed for good": (frame(FAILED, attempts=(attempt("killed for its memory"),)), [], []),
    "it ended, and its pod is gone unread": (frame(job(ended="Complete")), [], [f"Job/{NAME}"]),
    "an older try failed, the newest reported": (
        frame(job(), attempts=(attempt("fine", "z", "2"), attempt("a crash", "a", "1"))),
        [f"ConfigMap/{NAME}"],
        [],
    ),
    "a pod of an earlier Job of the name has reported": (
        frame(job(), attempts=(replace(attempt("fine"), job="uid-of-another"),)),
        [],
        [],
    ),
    "the spec was changed while its Job ran": (
        frame(job(), attempts=(attempt("running"),), declared=OTHER),
        [f"Job/llama-preflight-{OTHER.preflight}"],
        [f"Job/{NAME}"],
    ),
    "the spec asks for none any more": (
        frame(job(), declared=declared_of(model(preflight="Skip"))),
        [],
        [f"Job/{NAME}"],
    ),
    "suspended while it ran": (frame(job(), declared=declared_of(model(suspend=True))), [], [f"Job/{NAME}"]),
    "the spec cannot be read": (
        frame(job(), KEPT, declared=declared_of(model(template={"spec": {"volumes": 1}}))),
        [],
        [],
    ),
    "a report of a spec that is no revision": (
        frame(report_of(OTHER), KEPT, knowledge=KNOWN),
        [],
        [f"ConfigMap/llama-preflight-{OTHER.preflight}"],
    ),
    "what an earlier object of the name has left": (
        frame(strays=(job(), KEPT)),
        [f"Job/{NAME}"],
        [f"Job/{NAME}", f"ConfigMap/{NAME}"],
    ),
    "a report that somebody damaged": (
        frame(report_of(DECLARED, "{}"), job()),
        [],
        [f"ConfigMap/{NAME}"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_writes_when(case: str) -> None:
    seen, wanted, unwanted = CASES[case]
    assert (applied(seen), deleted(seen)) == (wanted, unwanted)


def revision_child(revision: Revision) -> Child:
    manifest = to_controller_revision(revision, OWNER)
    meta = {**manifest["metadata"], "uid": "uid-revision"}
    child = project(CONTROLLER_REVISIONS, {**manifest, "metadata": meta})
    assert child is not None
    return child


def test_a_report_stays_as_long_as_a_revision_that_it_is_about() -> None:
    assert OTHER.deployment is not None
    child = revision_child(revision_of(OTHER.deployment.spec, FACTS, "llama", {}))
    assert deleted(frame(report_of(OTHER), KEPT, child, knowledge=KNOWN)) == []


def test_what_is_proven_again_is_what_would_serve_and_not_a_newer_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The operator was upgraded, and its contract with the runtime asks for another proof."""
    assert DECLARED.deployment is not None
    kept = revision_of(DECLARED.deployment.spec, FACTS, "llama", {})
    monkeypatch.setattr(defaults, "ENGINE_IMAGE", "vllm/vllm-openai:v9")
    (again,) = preflight_manifests(frame(revision_child(kept)))
    (container,) = again["spec"]["template"]["spec"]["containers"]
    assert container["image"] == ENGINE
    assert again["metadata"]["name"] == NAME
    (new,) = preflight_manifests(frame())
    assert new["spec"]["template"]["spec"]["containers"][0]["image"] == "vllm/vllm-openai:v9"


def test_the_report_is_kept_as_it_was_told_with_what_the_kubelet_ran() -> None:
    (kept,) = preflight_manifests(frame(job(), attempts=(attempt("a broken plugin"),)))
    assert kept["data"]["report.json"] == BROKEN
    images = json.loads(kept["data"]["images.json"])
    assert images["engine"] == f"vllm/vllm-openai@{DIGEST}"
    child = stored(kept)
    assert child.kept is not None
    assert dict(child.kept.images) == images


def test_a_new_revision_runs_what_was_proven() -> None:
    spec = declared_of(model(plugins=[{"image": "registry.example.com/my-opt:1.0"}])).deployment
    assert spec is not None
    ran = (("engine", f"docker.io/vllm/vllm-openai@{DIGEST}"), ("plugin-0", "sha256:0"), ("x", "y"))
    assert KEPT.kept is not None
    known = Knowledge(FACTS, replace(KEPT.kept, images=ran), RUNTIME)
    assert ENGINE.startswith("vllm/vllm-openai:")
    assert known.images(spec.spec) == {"runtime": RUNTIME, "engine": f"vllm/vllm-openai@{DIGEST}"}


def test_without_preflight_there_is_no_proof() -> None:
    skipped = declared_of(model(preflight="Skip"))
    assert skipped.preflight == ""
    assert proof_of(frame(declared=skipped)) is None


def test_a_job_that_gave_up_is_named_and_one_that_tries_again_is_not() -> None:
    again = proof_of(frame(job(), attempts=(attempt("a crash"),)))
    over = proof_of(frame(FAILED, attempts=(attempt("a crash"),)))
    assert again is not None
    assert over is not None
    assert (again.given_up, over.given_up) == ("", NAME)


def tainted(*taints: tuple[str, str, str]) -> NodeView:
    found = [{"key": key, "value": value, "effect": effect} for key, value, effect in taints]
    return node_facts({"metadata": {"name": "n"}, "spec": {"taints": found}, "status": {}})


def test_where_no_node_takes_it_the_taints_that_it_does_not_tolerate_are_named() -> None:
    nodes = [
        tainted(("team", "b", "NoSchedule"), ("nvidia.com/gpu", "present", "NoSchedule")),
        tainted(("team", "b", "NoSchedule"), ("node.kubernetes.io/unreachable", "", "NoExecute")),
        tainted(("spot", "", "PreferNoSchedule")),
        tainted(("maintenance", "", "NoExecute")),
    ]
    homeless = proof_of(frame(job(), attempts=(attempt("no node takes it"),)), nodes)
    assert homeless is not None
    assert homeless.kept_away == ("maintenance:NoExecute", "team=b:NoSchedule")
    told = unproven(homeless).message
    assert told.endswith("Taints that it does not tolerate: maintenance:NoExecute, team=b:NoSchedule.")
    runs = proof_of(frame(job(), attempts=(attempt("running"),)), nodes)
    assert runs is not None
    assert runs.kept_away == ()


def test_images_of_a_damaged_config_map_are_none() -> None:
    for text in ("[]", "{", '{"engine": 1}'):
        manifest = preflight_config_map(OWNER, KEY, BROKEN, {})
        child = stored({**manifest, "data": {**manifest["data"], "images.json": text}})
        assert child.kept is not None
        assert child.kept.images == ()
