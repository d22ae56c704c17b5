"""GitOps without drift: whoever applies a file again changes nothing, and nobody else has changed it.

The tools themselves are in test_flux.py; here kubectl applies, in both of its ways.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from bowsprit.api.crd import crd_yaml
from e2e.cluster.control_plane import ControlPlane, KubectlFailed
from e2e.cluster.waiting import wait_until
from tests.integration.arena import Arena, Json
from tests.integration.conftest import ROOT
from tests.integration.life import TWO_PODS, engine, fetch, revisions, target, uids
from tests.models import LLAMA_8B

pytestmark = pytest.mark.integration

CLIENT_SIDE = ("apply",)
SERVER_SIDE = ("apply", "--server-side", "--field-manager=gitops")
NOT_YET = ("no matches for kind", "could not find the requested resource")
"""What kubectl says of objects whose definition is not served yet."""
both_ways = pytest.mark.parametrize("how", [CLIENT_SIDE, SERVER_SIDE], ids=["client-side", "server-side"])


def files(arena: Arena, name: str = "chat", **spec: object) -> str:
    """What stands in Git: a model, and nothing of its replicas."""
    return yaml.safe_dump(arena.manifest(name, **spec))


def apply(arena: Arena, how: Sequence[str], text: str) -> str:
    return arena.kubectl(*how, "-f", "-", input=text)


def wait_at_rest(arena: Arena, name: str) -> Json:
    """The model once it is Ready and nothing more is to be done for it."""
    arena.wait_ready(name)
    arena.wait(f"{name} at rest", lambda: arena.condition(name, "Reconciling")["status"] == "False")
    return arena.get(name)


@pytest.fixture
def model_config(stage: Arena) -> None:
    """The ConfigMap that the models name."""
    stage.nodes(1)
    stage.model("chat", suspend=True)
    stage.kubectl("delete", "mdep", "chat", "--wait=true")


@both_ways
@pytest.mark.usefixtures("model_config")
@pytest.mark.parametrize("shape", [{}, TWO_PODS], ids=["a Deployment", "a LeaderWorkerSet"])
def test_the_same_file_again_changes_nothing(stage: Arena, how: Sequence[str], shape: Json) -> None:
    text = files(stage, **shape)
    apply(stage, how, text)
    before, pods = wait_at_rest(stage, "chat"), uids(stage, "chat")
    said = apply(stage, how, text)
    assert stage.get("chat") == before
    assert uids(stage, "chat") == pods
    assert said == (
        "modeldeployment.bowsprit.dev/chat unchanged\n"
        if how is CLIENT_SIDE
        else "modeldeployment.bowsprit.dev/chat serverside-applied\n"
    )
    assert stage.kubectl("diff", *how[1:], "-f", "-", input=text) == ""


@both_ways
@pytest.mark.usefixtures("model_config")
def test_replicas_that_git_leaves_out_are_the_scalers(stage: Arena, how: Sequence[str]) -> None:
    text = files(stage)
    apply(stage, how, text)
    stage.wait_ready("chat")
    stage.kubectl("scale", "mdep", "chat", "--replicas=2")
    before = wait_at_rest(stage, "chat")
    apply(stage, how, text)
    assert stage.get("chat") == before
    assert before["spec"]["replicas"] == 2


@pytest.mark.usefixtures("model_config")
def test_of_a_long_lived_model_the_operator_has_written_the_status_alone(stage: Arena) -> None:
    text = files(stage)
    apply(stage, SERVER_SIDE, text)
    created = wait_at_rest(stage, "chat")
    stage.kubectl("scale", "mdep", "chat", "--replicas=2")
    wait_at_rest(stage, "chat")
    changed = {"engine": engine("--enable-prefix-caching")}
    apply(stage, SERVER_SIDE, files(stage, **changed))
    wait_at_rest(stage, "chat")
    apply(stage, SERVER_SIDE, files(stage, suspend=True, **changed))
    stage.wait("all pods to go", lambda: not stage.pods("chat"))
    apply(stage, SERVER_SIDE, files(stage, **changed))
    lived = wait_at_rest(stage, "chat")

    assert lived["spec"] == {**yaml.safe_load(files(stage, **changed))["spec"], "replicas": 2}
    assert lived["metadata"]["generation"] == 5, "four changes, and all of them ours"
    changing = {"generation", "resourceVersion", "managedFields"}
    assert {name: value for name, value in lived["metadata"].items() if name not in changing} == {
        name: value for name, value in created["metadata"].items() if name not in changing
    }
    assert created["metadata"].keys() - changing == {"name", "namespace", "uid", "creationTimestamp"}
    wrote = {(each["manager"], each.get("subresource", "")) for each in lived["metadata"]["managedFields"]}
    assert wrote == {("gitops", ""), ("bowsprit", "status")}


@pytest.mark.usefixtures("model_config")
def test_replaced_by_a_tool_that_drops_all_notes_it_serves_on(stage: Arena) -> None:
    text = files(stage)
    apply(stage, CLIENT_SIDE, text)
    before, pods = wait_at_rest(stage, "chat"), uids(stage, "chat")
    stage.kubectl("replace", "-f", "-", input=text)
    after = wait_at_rest(stage, "chat")
    assert "annotations" in before["metadata"]
    assert "annotations" not in after["metadata"]
    assert after["status"] == before["status"]
    assert uids(stage, "chat") == pods


@pytest.mark.usefixtures("model_config")
def test_children_carry_nothing_by_which_a_tool_would_take_them_for_its_own(stage: Arena) -> None:
    manifest = yaml.safe_load(files(stage))
    manifest["metadata"] |= {
        "labels": {"app.kubernetes.io/instance": "argo-app", "kustomize.toolkit.fluxcd.io/name": "models"},
        "annotations": {"argocd.argoproj.io/tracking-id": "argo-app:bowsprit.dev/ModelDeployment:a/chat"},
    }
    apply(stage, SERVER_SIDE, yaml.safe_dump(manifest))
    wait_at_rest(stage, "chat")
    kinds = "deployments,replicasets,pods,services,controllerrevisions"
    children = yaml.safe_load(stage.kubectl("get", kinds, "-o", "yaml"))["items"]
    assert {child["kind"] for child in children} >= {"Deployment", "Pod", "Service", "ControllerRevision"}
    for child in children:
        text = yaml.safe_dump(child["metadata"].get("labels", {}) | child["metadata"].get("annotations", {}))
        assert "argo" not in text, child["metadata"]["name"]
        assert "fluxcd" not in text, child["metadata"]["name"]


@both_ways
def test_a_namespace_that_is_pruned_and_comes_again(stage: Arena, how: Sequence[str]) -> None:
    stage.nodes(1)
    stage.model("chat")
    stage.model("group", **TWO_PODS)
    stage.wait_ready("chat", "group")
    was = {name: (stage.get(name)["metadata"]["uid"], target(stage, name)) for name in ("chat", "group")}
    config = stage.kubectl("get", "configmap", "chat-config", "-o", "jsonpath={.data.config\\.json}")
    stage.cluster.kubectl("delete", "namespace", stage.namespace, "--timeout=120s")

    commit = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stage.namespace}},
        *(_config(stage, name, config) for name in ("chat", "group")),
        stage.manifest("chat"),
        stage.manifest("group", **TWO_PODS),
    ]
    apply(stage, how, yaml.safe_dump_all(commit))
    stage.wait_ready("chat", "group")
    for name, (uid, revision) in was.items():
        assert stage.get(name)["metadata"]["uid"] != uid
        assert target(stage, name) == revision, "the same content is the same revision"
        assert len(revisions(stage, name)) == 1
        assert sum(stage.nodes_of(name).values()) == (1 if name == "chat" else 2)


def _config(arena: Arena, name: str, text: str) -> Json:
    meta = {"name": f"{name}-config", "namespace": arena.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"config.json": text}}


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Arena]:
    """A cluster that has the operator's rights, and not yet the definition of its kind."""
    with ControlPlane() as cluster:
        cluster.kubectl("apply", "-f", str(ROOT / "operator" / "rbac.yaml"))
        cluster.kubectl("create", "namespace", "models")
        api = cluster.api()
        wait_until("the account", lambda: api.answers("/api/v1/namespaces/models/serviceaccounts/default"))
        arena = Arena(cluster, "models", tmp_path)
        yield arena
        arena.stop_operators()


@pytest.mark.parametrize("restarted", [False, True], ids=["and runs on", "and is restarted in between"])
def test_definition_and_models_of_one_commit_while_the_operator_runs_already(
    bare: Arena, restarted: bool
) -> None:
    bare.nodes(1)
    operator = bare.operator("operator-a", "--resync=5")
    bare.wait("the operator to wait for its kind", lambda: "watch.retry" in operator.log.read_text())
    assert fetch(operator, "/readyz")[0] == 503
    assert fetch(operator, "/healthz")[0] == 200
    commit = "\n---\n".join(
        [crd_yaml(), yaml.safe_dump(_config(bare, "chat", json.dumps(LLAMA_8B))), files(bare)]
    )

    def applied() -> bool:
        """As GitOps controllers do: again and again until all of it is taken."""
        try:
            bare.kubectl(*SERVER_SIDE, "-f", "-", input=commit)
        except KubectlFailed as refused:
            if not any(words in str(refused) for words in NOT_YET):
                raise
            return False
        return True

    bare.wait("the commit to be applied", applied)
    if restarted:
        operator.kill()
        operator.start()
    before = wait_at_rest(bare, "chat")
    assert applied()
    assert bare.get("chat") == before

    # All of it is pruned, and comes again. What the old one owned may outlive it while its kind is unknown.
    bare.cluster.kubectl("delete", "crd", "modeldeployments.bowsprit.dev", "--timeout=60s")
    bare.wait("the commit to be applied", applied)
    after = wait_at_rest(bare, "chat")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    bare.wait("what the old one owned to go", lambda: sum(bare.nodes_of("chat").values()) == 1)
    assert len(revisions(bare, "chat")) == 1
